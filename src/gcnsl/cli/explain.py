"""``gcnsl explain``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, percent, print_json, print_table, say
from gcnsl.cli.model_saving import open_model
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.estimator.explanation import Explanation, Neighbour
    from gcnsl.estimator.importance import Importance

SHOWN_CONTRIBUTIONS, SHOWN_REASONS = 8, 3


@app.command()
def explain(
    model: shared.ModelArgument,
    node: Annotated[
        str | None,
        typer.Argument(
            help="A node's id, or its number where nodes have no ids; without it, what matters over all nodes.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show at most so many neighbours or columns.")] = 10,
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
    """Show why a node is classified as it is or, without a node, which columns matter, and how much the edges do.

    For a node: what each column adds to the log-odds of its class against the second most probable one, ln(p / p'), or
    against the true one if that is known and another; what would be predicted without its edges, and without each of
    them; and its neighbours in the given graph and, if the method has one, in the learned graph.

    Over all: how much worse the model is on nodes that it has not learned from if a column is shuffled, or the edges.

    Example: [bold]gcnsl explain model[/]

    Example: [bold]gcnsl explain model bspwm --report bspwm.html[/]
    """
    if node is None:
        if page is not None:
            raise InputError("--report draws a node: name one, or write the page of the model with `gcnsl report`")
        with busy("Shuffling columns"):
            from gcnsl.estimator.importance import measure_importance

            classifier, _ = open_model(model, device)
            importance = measure_importance(classifier)
        if as_json:
            print_json(importance.to_dict())
        else:
            _print_importance(importance, top)
        return
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
        print_json(_as_json(explanation, top))
        return
    _print_explanation(explanation, top)
    if page is not None:
        say("Page", page, where=out)


def _as_json(explanation: "Explanation", top: int) -> dict[str, Any]:
    answer = asdict(explanation)
    for name in ("original", "reconnected"):
        neighbours = getattr(explanation, name)
        if neighbours is not None:
            tallies = {kind: asdict(tally) for kind, tally in explanation.tally(neighbours).items()}
            answer[name] = {"count": len(neighbours), **tallies, "nodes": answer[name][:top]}
    return answer | {"is_crowded": explanation.is_crowded}


def _print_explanation(explanation: "Explanation", top: int) -> None:
    node, predicted = explanation.node, escape(str(explanation.node.predicted))
    likely = ", ".join(f"{escape(str(name))} {percent(p)}" for name, p in list(explanation.probabilities.items())[:3])
    known = "its class was not known to training"
    if node.label is not None:
        known = f"its class, {escape(str(node.label))}, was known: it was for {node.used_for}"
    out.print(f"[bold]{escape(node.title)}[/] is predicted to be [bold]{predicted}[/] [dim]({known})[/]")
    out.print(f"Probabilities: {likely}", highlight=False)
    against = f"for {predicted} against {escape(str(explanation.rival))}"
    if explanation.evidence:
        parts = ", ".join(f"{name} {value:+.2f}" for name, value in explanation.evidence.items())
        out.print(f"By branch of the network, {against}, in log-odds: {parts}", highlight=False)
    _print_edges(explanation)
    out.print()
    _print_contributions(explanation, against)
    own = "Given graph A" if explanation.reconnected is not None else "Its neighbours"
    if explanation.is_crowded:
        summary = explanation.summary(explanation.reconnected or [])
        out.print(f"Learned graph A*: {escape(summary)}; so many that they say nothing about this node", style="bold")
    elif explanation.reconnected:
        by = f"Learned graph A* of {explanation.learned_by}"
        _print_neighbours(by, "in A too", explanation, explanation.reconnected, top)
        for other in explanation.reconnected[:SHOWN_REASONS]:
            for reason in other.reasons:
                out.print(escape(f"{reason.graph} joins {other.title}: {reason}"), highlight=False)
    _print_neighbours(own, "in A* too", explanation, explanation.original, top)


def _print_edges(explanation: "Explanation") -> None:
    """What would be predicted without the node's edges, and without the one that matters most."""
    alone, predicted = explanation.alone, explanation.node.predicted
    if alone is None:
        return
    count = len(explanation.original)
    edges = f"its {count:,} neighbours" if count > 1 else "its only neighbour"
    still = "still" if alone.predicted == predicted else "instead"
    told = f"Without {edges}: {still} {alone.predicted} ({percent(alone.probability)})"
    turning = [other for other in explanation.original if other.becomes is not None]
    tried = sum(other.effect is not None for other in explanation.original)
    if turning and count > 1:
        told += f". Without the edge to {turning[0].title} alone it would be {turning[0].becomes}"
        told += f", and so it would without {len(turning) - 1} others" if len(turning) > 1 else ""
    elif count > 1:
        told += f". No single edge{'' if tried == count else f' of the {tried} that were tried'} changes its class"
    out.print(escape(told), highlight=False)


def _print_contributions(explanation: "Explanation", against: str) -> None:
    found = explanation.contributions
    if not found:
        return
    others = found[SHOWN_CONTRIBUTIONS:]
    rows = (
        (escape(each.name), escape(each.value_text), f"{each.log_odds:+.2f}") for each in found[:SHOWN_CONTRIBUTIONS]
    )
    caption = f"and {len(others):,} more, together {sum(each.log_odds for each in others):+.2f}" if others else None
    out.print(f"What speaks {against}, compared with the training nodes", style="bold")
    print_table(("what", "value", "log-odds"), rows, caption=caption, right=("value", "log-odds"))


def _print_neighbours(
    title: str, too: str, explanation: "Explanation", neighbours: "list[Neighbour]", top: int
) -> None:
    out.print(f"{title}: {escape(explanation.summary(neighbours))}", style="bold", highlight=False)
    if not neighbours:
        return
    shown, name = neighbours[:top], escape(explanation.node.title)
    columns: dict[str, list[str]] = {
        "node": [other.title for other in shown],
        "edge in A": [other.arrows for other in shown],
        "known class": ["" if other.label is None else str(other.label) for other in shown],
        "used for": [other.used_for or "" for other in shown],
        "predicted": [f"{other.predicted} ({other.probability:.2f})" for other in shown],
        "similarity": ["" if other.similarity is None else f"{other.similarity:.2f}" for other in shown],
        "edge adds": ["" if other.effect is None else f"{other.effect:+.2f}" for other in shown],
        too: ["yes" if other.original and other.reconnected else "" for other in shown],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    remarks = [f"→ from {name}, ← to {name}"] if any({"out", "in"} & other.links.keys() for other in neighbours) else []
    if "edge adds" in columns:
        remarks += [f"edge adds: to the log-odds for {explanation.node.predicted} against {explanation.rival}"]
    remarks += [f"and {len(neighbours) - top:,} more: --top shows more"] if len(neighbours) > top else []
    rows = ([escape(cell) or "–" for cell in row] for row in zip(*columns.values(), strict=True))
    print_table(tuple(columns), rows, caption="; ".join(remarks) or None, right=("similarity", "edge adds"))


def _print_importance(importance: "Importance", top: int) -> None:
    for sentence in importance.sentences():
        out.print(escape(sentence), highlight=False)
    rows = (
        (escape(each.column), importance.text(each.shuffled), importance.worse(each))
        for each in importance.columns[:top]
    )
    more = len(importance.columns) - top
    caption = f"and {more:,} more: --top shows more" if more > 0 else None
    if importance.columns:
        headings = ("column", f"{importance.metric} if shuffled", "worse by")
        print_table(headings, rows, caption=caption, right=headings[1:])
