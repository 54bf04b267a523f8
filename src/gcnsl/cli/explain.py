"""``gcnsl explain``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, percent, print_json, print_table, say
from gcnsl.cli.model_saving import open_model

if TYPE_CHECKING:
    from gcnsl.estimator.explanation import Explanation, Neighbour

SHOWN_FEATURES, SHOWN_REASONS = 8, 3


@app.command()
def explain(
    model: shared.ModelArgument,
    node: Annotated[
        str, typer.Argument(help="A node's id, or its number where nodes have no ids.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=1, help="Show at most so many neighbours, the most similar first.")] = 10,
    page: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Write a page (.html) that draws the node between its neighbours, to walk on to them.",
            callback=shared.refused_by("gcnsl.pictures:check_page"),
        ),
    ] = None,
    device: shared.DeviceOption = "auto",
    as_json: shared.JsonOption = False,
) -> None:
    """Show why a node is classified as it is: probabilities, its features, and its neighbours.

    Shares of features are integrated gradients: how much each adds, on all ways through the model, to the log-odds of
    the class against the second most probable one, ln(p / p'), when the node's features grow from zero to what they
    are. Neighbours are those of the given graph, with the directions and weights of its edges, and, if the method has
    one, of the learned graph.

    Example: [bold]gcnsl explain model bspwm --report bspwm.html[/]
    """
    with busy("Looking at the model"):
        from gcnsl.estimator.explanation import explain as explain_node
        from gcnsl.estimator.explanation import find_node

        classifier, _ = open_model(model, device)
        number = find_node(classifier, node)
        explanation = explain_node(classifier, number)
        if page is not None:
            from gcnsl.evaluation.model_page import write_node_page

            write_node_page(classifier, number, page)
    if as_json:
        answer = asdict(explanation)
        for name in ("original", "reconnected"):
            neighbours = getattr(explanation, name)
            if neighbours is not None:
                tallies = {kind: asdict(tally) for kind, tally in explanation.tally(neighbours).items()}
                answer[name] = {"count": len(neighbours), **tallies, "nodes": answer[name][:top]}
        answer["is_crowded"] = explanation.is_crowded
        print_json(answer)
        return
    _print_explanation(explanation, top)
    if page is not None:
        say("Page", page, where=out)


def _print_explanation(explanation: "Explanation", top: int) -> None:
    node, predicted = explanation.node, escape(str(explanation.node.predicted))
    likely = ", ".join(f"{escape(str(name))} {percent(p)}" for name, p in list(explanation.probabilities.items())[:3])
    known = "its class was not known to training"
    if node.label is not None:
        known = f"its class, {escape(str(node.label))}, was known: it was for {node.used_for}"
    out.print(f"[bold]{escape(str(node.id))}[/] is of class [bold]{predicted}[/] [dim]({known})[/]")
    out.print(f"Probabilities: {likely}", highlight=False)
    against = f"for {predicted} against {escape(str(explanation.rival))}"
    if explanation.evidence:
        parts = ", ".join(f"{name} {value:+.2f}" for name, value in explanation.evidence.items())
        out.print(f"What speaks {against}, in log-odds: {parts}", highlight=False)
    out.print()
    _print_features(explanation, against)
    if explanation.reconnected is None:
        out.print(f"{explanation.method} has no learned graph here.")
    elif explanation.is_crowded:
        out.print(f"Learned graph A*: {escape(explanation.summary(explanation.reconnected))}", style="bold")
        out.print("A* joins the node to so many others that it tells nothing about this one.")
    else:
        _print_neighbours("Learned graph A*", "in A too", explanation, explanation.reconnected, top)
        _print_reasons(explanation.reconnected[:SHOWN_REASONS])
    _print_neighbours("Given graph A", "in A* too", explanation, explanation.original, top)


def _print_features(explanation: "Explanation", against: str) -> None:
    if explanation.features is None:
        out.print(f"{explanation.method} has no gradients, so it is not known what its own features add.")
        return
    shown, others = explanation.features[:SHOWN_FEATURES], explanation.features[SHOWN_FEATURES:]
    if not shown:
        out.print("Its own features have no share in the prediction.")
        return
    rows = ((escape(f.name), f"{f.value:g}", f"{f.log_odds:+.2f}") for f in shown)
    out.print(f"Its own features, {against}", style="bold")
    print_table(("feature", "value", "log-odds"), rows, right=("value", "log-odds"))
    if others:
        rest = sum(feature.log_odds for feature in others)
        out.print(f"and {len(others):,} more, together {rest:+.2f}", highlight=False)


def _print_reasons(neighbours: "list[Neighbour]") -> None:
    """Say why A* joins the closest neighbours, one line each."""
    for other in neighbours:
        for reason in other.reasons:
            out.print(escape(f"{reason.graph} joins {other.id}: {reason}"), highlight=False)


def _print_neighbours(
    title: str, too: str, explanation: "Explanation", neighbours: "list[Neighbour]", top: int
) -> None:
    out.print(f"{title}: {escape(explanation.summary(neighbours))}", style="bold", highlight=False)
    if not neighbours:
        return
    has_arrows = any(other.arrows for other in neighbours)
    rows = (
        (
            escape(str(other.id)),
            *([other.arrows or "–"] if has_arrows else []),
            "–" if other.label is None else escape(str(other.label)),
            other.used_for or "–",
            escape(f"{other.predicted} ({other.probability:.2f})"),
            "–" if other.similarity is None else f"{other.similarity:.2f}",
            "yes" if other.original and other.reconnected else "",
        )
        for other in neighbours[:top]
    )
    edge = ["edge in A"] if has_arrows else []
    headings = ("node", *edge, "known class", "used for", "predicted", "similarity", too)
    name = escape(str(explanation.node.id))
    remarks = [f"→ from {name}, ← to {name}"] if any({"out", "in"} & other.links.keys() for other in neighbours) else []
    remarks += [f"and {len(neighbours) - top:,} more: --top shows more"] if len(neighbours) > top else []
    print_table(headings, rows, caption="; ".join(remarks) or None, right=("similarity",))
