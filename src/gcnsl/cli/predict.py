"""``gcnsl predict``."""

from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.after_training import say_if_interrupted
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_facts, print_json, print_table, say
from gcnsl.cli.graph_source import IN_A_MODEL, GraphSource, takes_graph
from gcnsl.cli.quality_tables import metric_facts, print_classes
from gcnsl.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from gcnsl.evaluation.quality import Unseen

_SHOWN = 10


@app.command()
@partial(takes_graph, without=IN_A_MODEL)
def predict(
    model: shared.ModelArgument,
    source: GraphSource,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all predictions into this file (.csv, .tsv or .parquet)."),
    ] = None,
    for_spreadsheet: Annotated[
        bool,
        typer.Option(
            "--for-spreadsheet",
            help="Put an apostrophe before ids and classes that begin with =, +, - or @, which a spreadsheet would "
            "compute. Use it if others chose these names.",
        ),
    ] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="Say how good predictions are, by labels that neither training nor validation used.",
        ),
    ] = False,
    metric: shared.MetricOption = None,
    plot: shared.PlotOption = None,
    device: shared.DeviceOption = "auto",
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Predict the class of every node, in the graph that the model was trained on or in a graph that has grown since.

    Training nodes are found by their ids, in any order, and must have the features they had; other nodes are new.
    Columns are encoded as in training, and those that training did not have are not looked at; edges are directed if
    they were in training. With --evaluate all metrics are printed, and each class; --metric puts one of them in bold,
    and --plot draws which classes are taken for which.

    Example: [bold]gcnsl predict model -o predictions.csv[/]

    Example: [bold]gcnsl predict model --nodes nodes.csv --edges edges.csv -o predictions.parquet --evaluate[/]
    """
    from gcnsl.checks import check_choice
    from gcnsl.graph.tables import check_table, write_table
    from gcnsl.training import METRICS

    if metric is not None:
        check_choice("metric", metric, METRICS)
    if output is not None:
        check_table(output)
    if evaluate and not source.is_given:
        raise InputError("--evaluate needs labels that training did not have: name the graph, as for `gcnsl train`")
    if plot is not None and not evaluate:
        raise InputError("--plot draws what --evaluate finds: give --evaluate too")
    with busy("Predicting", quiet=quiet):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.estimator.predictions import prediction_table
        from gcnsl.evaluation.quality import quality_on_unseen

        classifier = NodeClassifier.load(model, device=device)
        like = source.like(classifier.graph_)
        data = like.read(split=None, root=root, encoder=classifier.encoder_) if source.is_given else None
        say_if_interrupted(classifier)
        table = prediction_table(classifier, data, by_class=proba)
        unseen = quality_on_unseen(classifier, data) if evaluate and data is not None else None
    if output is not None:
        write_table(table, output, for_spreadsheet=for_spreadsheet)
    if unseen is not None and plot is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(unseen.quality, plot, title=f"{classifier.method}, nodes that were not trained on")
    if as_json:
        rows = table.to_pylist()
        print_json(rows if unseen is None else {"evaluation": asdict(unseen), "predictions": rows})
        return
    new = table.num_rows - len(classifier.y_)
    out.print(f"[bold]{table.num_rows:,} nodes[/]" + (f", {new:,} of them new" if new else ""), highlight=False)
    _print_predictions(table, rows=output is None)
    if unseen is not None:
        _print_evaluation(unseen, metric)
    for title, path in {"Predictions": output, "Picture": plot}.items():
        if path is not None:
            say(title, path, where=out)


def _print_evaluation(unseen: "Unseen", metric: str | None) -> None:
    print_facts("Evaluation", metric_facts(unseen.quality, metric))
    print_classes(unseen.quality)
    left_out = {
        "for training or validation": unseen.trained_on,
        "of classes that the model does not know": unseen.unknown,
    }
    told = " and ".join(f"{count:,} {which}" for which, count in left_out.items() if count)
    out.print(
        f"{unseen.quality.nodes:,} labelled nodes are counted{told and f'; {told} are not'}.",
        highlight=False,
        soft_wrap=True,
    )


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
