"""``gcnsl predict``."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_json, print_path
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.shared_options import DeviceOption, JsonOption, ModelArgument, QuietOption, RootOption

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 10


@app.command()
@takes_graph
def predict(
    model: ModelArgument,
    source: GraphSource,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all predictions into this file (.csv, .tsv or .parquet)."),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    device: DeviceOption = "auto",
    root: RootOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the class of every node, in the graph that the model was trained on or in a graph that has grown since.

    Training nodes are found by their ids, in any order, and must have the features they had; other nodes are new.

    Example: [bold]gcnsl predict model -o predictions.csv[/]

    Example: [bold]gcnsl predict model --nodes nodes.csv --edges edges.csv -o predictions.parquet[/]
    """
    from gcnsl.graph.table_writing import check_table, write_table

    if output is not None:
        check_table(output)
    with busy("Predicting", quiet=quiet):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.estimator.predictions import prediction_table

        classifier = NodeClassifier.load(model, device=device)
        data = source.read(split=None, root=root) if source.is_given else None
        table = prediction_table(classifier, data, by_class=proba)
    if output is not None:
        write_table(table, output)
    if as_json:
        print_json(table.to_pylist())
        return
    _print_classes(table, new=table.num_rows - len(classifier.y_))
    if output is None:
        _print_rows(table)
    else:
        print_path("Predictions", output)


def _print_classes(table: "pa.Table", *, new: int) -> None:
    predicted: list[Any] = table["predicted"].to_pylist()
    shown = Table("predicted", "nodes")
    for name, count in Counter(predicted).most_common():
        shown.add_row(escape(str(name)), f"{count:,}")
    out.print(f"[bold]{table.num_rows:,} nodes[/]" + (f", {new:,} of them new" if new else ""), highlight=False)
    out.print(shown)
    sure = sum(probability >= 0.9 for probability in table["probability"].to_pylist())
    out.print(f"{sure:,} of the {table.num_rows:,} have a probability of 0.9 or more.", highlight=False)


def _print_rows(table: "pa.Table") -> None:
    first = table.select(["id", "predicted", "probability"]).slice(0, _SHOWN)
    shown = Table(*first.column_names, title=f"The first {first.num_rows}", title_justify="left")
    for row in first.to_pylist():
        shown.add_row(escape(str(row["id"])), escape(str(row["predicted"])), f"{row['probability']:.2f}")
    out.print(shown)
    out.print("-o FILE.csv writes all of them, --json prints them.")
