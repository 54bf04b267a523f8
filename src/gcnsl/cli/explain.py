"""``gcnsl explain``."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, percent, print_json, print_path
from gcnsl.cli.shared_options import DeviceOption, JsonOption, ModelArgument, PlotOption

if TYPE_CHECKING:
    from gcnsl.estimator.explanation import Explanation, Neighbour


@app.command()
def explain(
    model: ModelArgument,
    node: Annotated[
        str, typer.Argument(help="A node's id, or its number where nodes have no ids.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=1, help="Show at most so many neighbours, the most similar first.")] = 10,
    plot: PlotOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Show why a node is classified as it is: probabilities, neighbours, and the learned graph if the method has one.

    Example: [bold]gcnsl explain model bspwm --plot bspwm.png[/]
    """
    with busy("Looking at the model"):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.estimator.explanation import explain as explain_node
        from gcnsl.estimator.explanation import find_node
        from gcnsl.pictures import check_picture

        if plot is not None:
            check_picture(plot)
        classifier = NodeClassifier.load(model, device=device)
        explanation = explain_node(classifier, find_node(classifier, node))
        if plot is not None:
            from gcnsl.estimator.explanation_picture import draw_explanation

            draw_explanation(explanation, plot)
    if as_json:
        print_json(_as_json(explanation, top))
        return
    _print_explanation(explanation, top)
    if plot is not None:
        print_path("Picture", plot)


def _as_json(explanation: "Explanation", top: int) -> dict[str, Any]:
    answer = asdict(explanation)
    for name in ("original", "reconnected"):
        neighbours = getattr(explanation, name)
        if neighbours is not None:
            answer[name] = {
                "count": len(neighbours),
                "agreement": explanation.agreement(neighbours),
                "nodes": [asdict(other) for other in neighbours[:top]],
            }
    return answer


def _print_explanation(explanation: "Explanation", top: int) -> None:
    node = explanation.node
    likely = ", ".join(f"{escape(str(name))} {percent(p)}" for name, p in list(explanation.probabilities.items())[:3])
    known = "its class was not known to training"
    if node.label is not None:
        known = f"its class, {escape(str(node.label))}, was known: it was for {node.used_for}"
    out.print(f"[bold]{escape(str(node.id))}[/] is [bold]{escape(str(node.predicted))}[/] [dim]({known})[/]")
    out.print(f"Probabilities: {likely}", highlight=False)
    if explanation.evidence:
        parts = ", ".join(f"{name} {value:+.2f}" for name, value in explanation.evidence.items())
        against = f"for {escape(str(node.predicted))} against {escape(str(explanation.rival))}"
        out.print(f"What speaks {against}, in logits: {parts}", highlight=False)
    out.print()
    if explanation.reconnected is None:
        out.print(f"{explanation.method} has no learned graph here.")
    else:
        _print_neighbours("Learned graph A*", explanation, explanation.reconnected, top)
    _print_neighbours("Given graph A", explanation, explanation.original, top)


def _print_neighbours(title: str, explanation: "Explanation", neighbours: "list[Neighbour]", top: int) -> None:
    share, predicted = explanation.agreement(neighbours), escape(str(explanation.node.predicted))
    if share is None:
        out.print(f"[bold]{title}[/]: no neighbours")
        return
    count = f"{len(neighbours):,} neighbour{'s' if len(neighbours) > 1 else ''}"
    left_out = len(neighbours) - top
    table = Table(
        title=f"{title}: {count}, {percent(share)} {predicted}",
        caption=f"and {left_out:,} more: --top shows more" if left_out > 0 else None,
        title_justify="left",
    )
    too = "in A too" if title.endswith("*") else "in A* too"
    for heading in ("node", "known class", "used for", "predicted", "similarity", too):
        table.add_column(heading, justify="right" if heading == "similarity" else "left")
    for other in neighbours[:top]:
        table.add_row(
            escape(str(other.id)),
            "–" if other.label is None else escape(str(other.label)),
            other.used_for or "–",
            escape(f"{other.predicted} ({other.probability:.2f})"),
            "–" if other.similarity is None else f"{other.similarity:.2f}",
            "yes" if other.original and other.reconnected else "",
        )
    out.print(table)
