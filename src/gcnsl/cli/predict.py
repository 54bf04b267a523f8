"""``gcnsl predict``."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_json, print_table, say
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.train import say_if_interrupted

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 10


@app.command()
@takes_graph
def predict(
    model: shared.ModelArgument,
    source: GraphSource,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all predictions into this file (.csv, .tsv or .parquet)."),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    device: shared.DeviceOption = "auto",
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Predict the class of every node, in the graph that the model was trained on or in a graph that has grown since.

    Training nodes are found by their ids, in any order, and must have the features they had; other nodes are new. Edges
    are directed if they were in training.

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
        like = source.like(classifier.graph_)
        data = like.read(split=None, root=root, encoder=classifier.encoder_) if source.is_given else None
        say_if_interrupted(classifier)
        table = prediction_table(classifier, data, by_class=proba)
    if output is not None:
        write_table(table, output)
    if as_json:
        print_json(table.to_pylist())
        return
    new = table.num_rows - len(classifier.y_)
    out.print(f"[bold]{table.num_rows:,} nodes[/]" + (f", {new:,} of them new" if new else ""), highlight=False)
    _print_predictions(table, rows=output is None)
    if output is not None:
        say("Predictions", output, where=out)


def _print_predictions(table: "pa.Table", *, rows: bool) -> None:
    counts = Counter(table["predicted"].to_pylist()).most_common()
    print_table(("predicted", "nodes"), ((escape(str(name)), f"{count:,}") for name, count in counts))
    sure = sum(probability >= 0.9 for probability in table["probability"].to_pylist())
    out.print(f"{sure:,} of the {table.num_rows:,} have a probability of 0.9 or more.", highlight=False)
    if rows:
        first = table.select(["id", "predicted", "probability"]).slice(0, _SHOWN)
        texts = (row | {"probability": f"{row['probability']:.2f}"} for row in first.to_pylist())
        cells = ([escape(str(value)) for value in row.values()] for row in texts)
        print_table(first.column_names, cells, title=f"The first {first.num_rows}")
        out.print("-o FILE.csv writes all of them, --json prints them.")
