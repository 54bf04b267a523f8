"""``gcnsl predict``."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import (
    busy,
    decision_facts,
    metric_facts,
    out,
    print_classes,
    print_facts,
    print_json,
    print_never_predicted,
    print_table,
    say,
)
from gcnsl.cli.graph_source import IN_A_MODEL, GraphSource, takes_graph
from gcnsl.cli.model_saving import open_model
from gcnsl.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured

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
    threshold: shared.ThresholdOption = None,
    positive: shared.PositiveOption = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Add the set of classes that holds the true one in this share of cases, such as .9, and its size.",
            callback=shared.refused_by("gcnsl.training.decisions:check_coverage"),
        ),
    ] = None,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="Let --coverage hold for the nodes of each class by themselves.")
    ] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="Say how good predictions are, by labels that neither training nor validation used.",
        ),
    ] = False,
    metric: Annotated[str | None, typer.Option(help="The metric of --evaluate that is printed in bold.")] = None,
    plot: shared.PlotOption = None,
    device: shared.DeviceOption = "auto",
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Predict the class of every node, in the graph that the model was trained on or in a graph that has grown since.

    Training nodes are found by their ids, in any order, and must have the features they had; other nodes are new.
    Columns are encoded as in training, and those that training did not have are not looked at; edges are directed if
    they were in training. `used_for` says whether a node was for training, validation or test, had no label
    (unlabelled), or is new. Decisions follow the threshold that `gcnsl train` has chosen, unless --threshold says
    otherwise. With --evaluate all metrics are printed, and each class; --metric puts one of them in bold,
    and --plot draws which classes are taken for which, calibration, and what other thresholds find.

    Example: [bold]gcnsl predict model -o predictions.csv[/]

    Example: [bold]gcnsl predict model -o predictions.csv --threshold recall=.8 --coverage .9[/]

    Example: [bold]gcnsl predict model --nodes nodes.csv --edges edges.csv -o predictions.parquet --evaluate[/]
    """
    import numpy as np

    from gcnsl.checks import check_choice
    from gcnsl.graph.tables import check_table, write_table
    from gcnsl.training import METRICS

    if metric is not None:
        check_choice("metric", metric, METRICS)
    graph_wanted = "--evaluate needs labels that training did not have: name the graph, as for `gcnsl train`"
    refused = {
        graph_wanted: evaluate and not source.is_given,
        "--plot draws what --evaluate finds: give --evaluate too": plot is not None and not evaluate,
        "--by-class is about the sets of --coverage: give --coverage too": by_class and coverage is None,
    }
    for why in (why for why, is_so in refused.items() if is_so):
        raise InputError(why)
    if output is not None:
        check_table(output)
    with busy("Predicting", quiet=quiet):
        classifier, data = open_model(model, device, source, root)
        probabilities = classifier.predict_proba() if data is None else classifier.predict_proba_graph(data)
        if threshold is not None or positive is not None:
            undecided = np.isin(classifier.used_for(data), ("test", "unlabelled", "new"))
            classifier.set_threshold(threshold or "auto", positive=positive, among=probabilities[undecided])
        sets = None if coverage is None else classifier.sets_of(probabilities, coverage, by_class=by_class)
        table = _table(classifier, data, probabilities, sets, by_class=proba)
        measured = _measured(classifier, data, probabilities) if evaluate and data is not None else None
    if output is not None:
        write_table(table, output, for_spreadsheet=for_spreadsheet)
    if measured is not None and plot is not None:
        from gcnsl.evaluation.pictures import draw_measured

        draw_measured(measured, plot, title=str(classifier.method))
    if as_json:
        answer: Any = table.to_pylist()
        if measured is not None:
            counts = {"trained_on": measured.trained_on, "unknown": measured.unknown}
            answer = {"evaluation": {"quality": measured.to_dict()} | counts, "predictions": answer}
        print_json(answer)
        return
    new = table.num_rows - len(classifier.y_)
    out.print(f"[bold]{table.num_rows:,} nodes[/]" + (f", {new:,} of them new" if new else ""), highlight=False)
    _print_predictions(table, rows=output is None)
    _print_threshold(classifier, table)
    _print_sets(classifier, table, coverage, by_class=by_class)
    if measured is not None:
        _print_evaluation(measured, metric)
    for title, path in {"Predictions": output, "Picture": plot}.items():
        if path is not None:
            say(title, path, where=out)


def _table(
    classifier: "NodeClassifier", data: "Data | None", probabilities: Any, sets: Any, *, by_class: bool
) -> "pa.Table":
    """One row per node, in the graph's order, with the predicted class; ``by_class`` adds a column for each class."""
    import numpy as np
    import pyarrow as pa

    best, graph = classifier.decide(probabilities), classifier.graph_ if data is None else data
    ids, names = graph.get("node_ids"), graph.get("node_names")
    columns: dict[str, Any] = {
        "id": np.arange(len(best)) if ids is None else ids,
        **({} if names is None else {"name": names}),
        "predicted": classifier.classes_[best],
        "probability": probabilities[np.arange(len(best)), best],
        "used_for": classifier.used_for(data),
    }
    if sets is not None:
        names = classifier.classes_.astype(str)
        columns |= {"set": pa.array([names[held].tolist() for held in sets]), "set_size": sets.sum(axis=1)}
    if by_class:
        columns |= {f"probability_{c}": probabilities[:, i] for i, c in enumerate(classifier.classes_)}
    return pa.table(columns)


def _measured(classifier: "NodeClassifier", data: "Data", probabilities: Any) -> "Measured":
    """How good the predictions are by labels that were not used; an error if there are none."""
    from gcnsl.evaluation import measure_classifier

    if data.y is None:
        raise InputError("the graph has no labels to evaluate by: name the column that holds the classes")
    measured = measure_classifier(classifier, data, predicted=probabilities)
    if measured.kind != "test":
        raise InputError("there is nothing to evaluate: every node that has a label was used in training; label others")
    return measured


def _print_evaluation(measured: "Measured", metric: str | None) -> None:
    print_never_predicted(measured)
    print_facts("Evaluation", metric_facts(measured, metric) | decision_facts(measured))
    print_classes(measured)
    left_out = {
        "for training or validation": measured.trained_on,
        "of classes that the model does not know": measured.unknown,
    }
    told = " and ".join(f"{count:,} {which}" for which, count in left_out.items() if count)
    counted = f"{measured.nodes:,} labelled nodes are counted{told and f'; {told} are not'}."
    out.print(counted, highlight=False, soft_wrap=True)


def _print_threshold(classifier: "NodeClassifier", table: "pa.Table") -> None:
    """Say by what the class of a threshold was predicted, and for how many nodes whose class training did not know."""
    chosen = classifier.threshold_
    if chosen is None:
        return
    nodes = table.select(["predicted", "used_for"]).to_pandas()
    unknown = nodes[~nodes["used_for"].isin(["training", "validation"])]
    name = classifier.classes_[chosen.positive]
    told = (
        f"{name} from a probability of {chosen.value:.4g} on ({chosen.rule}): {(unknown['predicted'] == name).sum():,}"
    )
    told += f" of the {len(unknown):,} nodes whose class training did not know; of the {chosen.nodes:,} labelled nodes "
    told += (
        f"it is judged on, {chosen.alerts:,} would be alerts, {chosen.found:,} of them right, of {chosen.positives:,}"
    )
    say("Threshold", f"{told} {name}", where=out)


def _print_sets(classifier: "NodeClassifier", table: "pa.Table", coverage: float | None, *, by_class: bool) -> None:
    """Say how large the sets are, if there are any, and what their coverage is based on."""
    if coverage is None:
        return
    sizes, known = Counter(table["set_size"].to_pylist()), classifier.held_out()
    counts = ", ".join(f"{count:,} with {size}" for size, count in sorted(sizes.items()))
    promise = f"meant to hold the true class of {coverage:.0%} of the nodes{' of each class' if by_class else ''}"
    based = (
        f"as far as they are like the {len(known.nodes):,} labelled nodes that they are calibrated on ({known.kind})"
    )
    say("Sets", f"{counts} of {len(classifier.classes_)} classes; {promise}, {based}", where=out)


def _print_predictions(table: "pa.Table", *, rows: bool) -> None:
    counts = Counter(table["predicted"].to_pylist()).most_common()
    numbers = ((escape(str(name)), f"{count:,}") for name, count in counts)
    print_table(("predicted", "nodes"), numbers, right=["nodes"])
    sure = sum(probability >= 0.9 for probability in table["probability"].to_pylist())
    out.print(f"{sure:,} of the {table.num_rows:,} have a probability of 0.9 or more.", highlight=False)
    if rows:
        shown = {"id", "name", "predicted", "probability", "used_for", "set"}
        first = table.select([name for name in table.column_names if name in shown]).slice(0, _SHOWN)
        texts = (row | {"probability": f"{row['probability']:.2f}"} for row in first.to_pylist())
        cells = ([escape("|".join(v) if isinstance(v, list) else str(v)) for v in row.values()] for row in texts)
        print_table(first.column_names, cells, title=f"The first {first.num_rows}")
        out.print("-o FILE.csv writes all of them, --json prints them.")
