"""``gcnsl train``: the best model for a graph, or one method."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from gcnsl.cli import console
from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import (
    busy,
    duration,
    in_shell,
    out,
    percent,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
)
from gcnsl.cli.graph_source import GraphSource, remark, suited_metric, takes_graph
from gcnsl.cli.model_saving import finishing, kept_if_interrupted, reserve, save_model, write_page
from gcnsl.cli.shared_options import read_options, with_class_weight, workers
from gcnsl.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from gcnsl.auto import ChosenBy
    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured
    from gcnsl.methods import Method

WHY_ENDED = {
    "patience": "none was better for long enough",
    "epochs": "the last one allowed",
    "minutes": "the last one within --minutes",
    "complete": "there are no more",
}
SHOWN = 15
"""Rows of the leaderboard."""


@app.command()
@takes_graph
def train(
    context: typer.Context,
    source: GraphSource,
    method: Annotated[
        str,
        typer.Option(help="A method of `gcnsl options`; auto tries many and keeps an ensemble of the best."),
    ] = "auto",
    minutes: Annotated[
        float | None,
        typer.Option(help="End training after so many minutes. With auto, 1, 5 or 30 by --quality."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the model in this folder; an older model is replaced.")
    ] = None,
    metric: shared.MetricOption = None,
    page: shared.PageOption = None,
    quality: Annotated[
        str | None, typer.Option(help="How much is tried: fast, good or best. \\[default: good]", show_default=False)
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="Keep the best model instead of an ensemble.")] = False,
    distil: Annotated[
        str | None, typer.Option(help="Keep one model of this method that has learned what the ensemble predicts.")
    ] = None,
    keep_validation: Annotated[
        bool, typer.Option("--keep-validation", help="Choose by the validation nodes and never learn from them.")
    ] = False,
    options: shared.SetOption = None,
    settings: shared.SettingsOption = None,
    class_weight: shared.ClassWeightOption = None,
    threshold: shared.ThresholdOption = None,
    positive: shared.PositiveOption = None,
    split: shared.SplitOption = "random",
    run: Annotated[
        int,
        typer.Option(min=0, help="Which of the splits, from 0; after the last the first follows again, reseeded."),
    ] = 0,
    all_labels: Annotated[
        bool, typer.Option("--all-labels", help="Learn from test nodes too, and hold nothing back: for later use.")
    ] = False,
    seed: shared.SeedOption = 0,
    plot: shared.PlotOption = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(min=1, help="With --method, save the run every so many epochs, to continue if it is killed."),
    ] = None,
    cluster: shared.ClusterOption = None,
    device: shared.DeviceOption = "auto",
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train the best model for a graph, test it on nodes that are held back, and save it.

    By default, many methods are tried for five minutes, and an ensemble of the best is kept; with --method, only this
    one is trained. Its hyper-parameters are those of --set, then of --settings, then those published for a graph of the
    literature, then the defaults. Ctrl-C keeps the best model so far; the same command continues.

    Example: [bold]gcnsl train debian --minutes 2 -o model[/]

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --metric average-precision[/]
    """
    is_auto, checkpoint = method == "auto", None
    for_auto = {"quality": quality, "single": single, "distil": distil, "keep_validation": keep_validation}
    for_one = {"set": options, "settings": settings, "checkpoint_every": checkpoint_every}
    unfit, whose = (for_one, "one method: name it with --method") if is_auto else (for_auto, "auto: leave out --method")
    for name, value in (unfit if is_auto else unfit | {"cluster": cluster}).items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} is for {whose}, or leave out --{name.replace('_', '-')}")
    if output is not None:
        checkpoint = reserve(context, output)
    elif checkpoint_every is not None:
        raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.checks import LARGEST, check_choice

        how: dict[str, Any] = {"benchmark": source.benchmark, "settings": settings}
        how |= {"for_one": with_class_weight(read_options(options), class_weight)}
        how |= {"for_auto": for_auto | {"class_weight": class_weight}}
        _resolved(method, metric, **how)
        from gcnsl.estimator import NodeClassifier
        from gcnsl.estimator.progress import in_words
        from gcnsl.graph import split_count
        from gcnsl.training.decisions import check_rule

        data = source.read_labelled(split=split, seed=seed, runs=run + 1, root=root)
        number = run % split_count(data)
        if positive is not None:
            check_choice("positive", positive, [str(name) for name in data.class_names])
        else:
            check_rule(threshold, data.class_names)
    suited = suited_metric(data, metric, quiet=quiet)
    methods, chosen = _resolved(method, suited, **how)
    if not is_auto:  # Ctrl-C writes a checkpoint anyway
        method, chosen = methods[0].name, chosen | {"checkpoint_every": checkpoint_every or LARGEST}
    remark(data, methods)
    rule = threshold or ("auto" if positive is not None or suited == "average-precision" else None)
    classifier = NodeClassifier(
        method,
        **chosen,
        threshold=rule if positive is None else None,
        random_state=seed + run,
        device=device,
        minutes=minutes,
        checkpoint=checkpoint,
    )
    doing, unit = ("Searching", "model") if is_auto else ("Training", "epoch")
    with (
        workers(cluster, quiet=quiet) as executor,
        kept_if_interrupted(classifier, output, quiet=quiet),
        progress(doing, unit=unit, quiet=quiet) as bar,
    ):

        def show(news: Any) -> None:
            total = news.seconds + news.seconds_left
            bar.update(completed=news.seconds, total=total, text=in_words(news), seconds_left=news.seconds_left)

        classifier.on_epoch = show
        classifier.fit_graph(data, run=number, all_labels=all_labels, root=root, executor=executor)
    if positive is not None:
        classifier.set_threshold(rule, positive=positive)
    with finishing(output):
        if output is not None:
            save_model(classifier, output)
        files = {"saved": output, "picture": plot, "page": page}
        _tell(classifier, data, number, suited or "accuracy", files, as_json=as_json, quiet=quiet)


def _resolved(
    method: str, metric: str | None, *, for_auto: Mapping[str, object], for_one: Mapping[str, Any], **where: Any
) -> "tuple[list[Method], dict[str, Any]]":
    """The method with its hyper-parameters, none for auto, and the classifier's options; an error if one is wrong."""
    if method == "auto":
        from gcnsl.auto import AutoSettings

        options = {name: value for name, value in for_auto.items() if value} | {"metric": metric or "accuracy"}
        AutoSettings().changed(**options)
        return [], options
    from gcnsl.methods import resolve

    resolved = resolve(method, options=for_one, metric=metric, **where)
    return [resolved], resolved.options()


def _tell(
    classifier: "NodeClassifier",
    data: "Data",
    run: int,
    metric: str,
    files: dict[str, Path | None],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure the model, write the picture and the page, and print what came of training and what comes next."""
    from gcnsl.evaluation import measure_split
    from gcnsl.training import choose_metric

    measured, is_auto = measure_split(classifier, data, run), hasattr(classifier, "leaderboard_")
    test = measured if measured.kind == "test" else None
    title = f"{_method_name(classifier)} on {data.get('name') or 'graph'}"
    if files["picture"] is not None:
        from gcnsl.evaluation.pictures import draw_measured

        draw_measured(measured, files["picture"], title=title)
    if files["page"] is not None:
        write_page(classifier, files["page"], data, measured=measured, quiet=quiet)
    if as_json:
        places = {name: files[name] and str(files[name]) for name in ("saved", "page")}
        print_json({"metric": metric} | _as_json(classifier, data, measured, run) | places)
        return
    console.print_never_predicted(measured)
    choice = choose_metric(classifier.y_, classifier.classes_)
    reason = f"since {escape(choice.reason)}" if choice.metric == metric else "as asked"
    if is_auto:
        _print_leaderboard(classifier.leaderboard_, classifier.chosen_by_)
    facts = _auto_facts(classifier, measured, metric) if is_auto else _facts(classifier, data, measured)
    saved = files["saved"]
    facts["saved in"] = "nowhere [dim](-o FOLDER saves it)[/]" if saved is None else escape(str(saved))
    scores = console.metric_facts(test, metric) | console.decision_facts(measured)
    print_facts(title, {"metric": f"{metric} [dim]({reason})[/]"} | scores | facts)
    if test is not None:
        console.print_classes(test)
    for name in ("picture", "page"):
        if files[name] is not None:
            say(name.capitalize(), files[name], where=out)
    if saved is not None:
        _print_next(classifier, saved)


def _facts(classifier: "NodeClassifier", data: "Data", measured: "Measured") -> dict[str, str]:
    """What is told about the training of one method, beside the metrics on the test nodes."""
    from gcnsl.evaluation.intervals import interval_text
    from gcnsl.evaluation.measured import graph_facts

    prepared, history, facts = classifier.fitted_.prepared, classifier.history_, {}
    for part, title in {"val": "validation accuracy", "train": "training accuracy"}.items():
        share = measured.learned[part]
        text = "–" if share.right is None else f"{percent(share.right)} {interval_text(share.interval)}"
        facts[title] = f"{text} [dim]of {share.nodes:,} nodes[/]"
    facts["features"] = prepared.features.in_words(prepared.graph)
    why = WHY_ENDED[history.stopped]
    facts["epochs"] = f"{len(history)} [dim]({why})[/], the best is {history.best_epoch}"
    facts["time"] = f"{history.seconds:.1f} s [dim]on {prepared.device}[/]"
    given, learned = graph_facts(classifier, data)
    for title, graph in {"given graph A": given, "learned graph A*": learned}.items():
        if graph is not None:
            agreement = "–" if graph.homophily is None else f"{graph.homophily:.2f}"
            remark = f" [yellow]({graph.doubt})[/]" if graph is learned and graph.doubt else ""
            facts[title] = f"{graph.edges:,} edges, homophily {agreement}{remark}"
    return facts


def _print_leaderboard(table: "pd.DataFrame", chosen_by: "ChosenBy") -> None:
    from gcnsl.auto.selection import shown_scores
    from gcnsl.training import METRICS

    text, scores = METRICS[table["metric"].iloc[0]].text, shown_scores(table)
    rows = (
        (
            escape(row.model),
            *(text(getattr(row, name)) for name in scores),
            f"{row.train_seconds:.1f} s",
            f"{1000 * row.predict_seconds:.0f} ms",
            escape(row.verdict),
        )
        for row in table.head(SHOWN).itertuples()
    )
    short = {"validation": "valid.", "first_fold": "fold 1", "test": "test"}
    headings = ("model", *(short[name] for name in scores), "train", "predict", "verdict")
    caption = f"valid. is on {chosen_by.nodes:,} nodes"
    caption += f", fold 1 on {chosen_by.first_fold:,} of them" if "first_fold" in scores else ""
    caption += f"; {chosen_by.metric} has chosen" if chosen_by.metric != table["metric"].iloc[0] else ""
    more = f"; {len(table) - SHOWN} more: --json shows all" if len(table) > SHOWN else ""
    title = f"Leaderboard, {table['metric'].iloc[0]}"
    print_table(headings, rows, title=title, caption=caption + more, right=headings[1:-1])


def _auto_facts(classifier: "NodeClassifier", measured: "Measured", metric: str) -> dict[str, str]:
    """What is told about a selection, beside the metrics on the test nodes."""
    from gcnsl.training import METRICS

    facts, chosen_by = dict[str, str](), classifier.chosen_by_
    if measured.kind != "test":
        first, is_blend = classifier.leaderboard_.iloc[0], _method_name(classifier) == "auto"
        nodes = chosen_by.nodes if is_blend else chosen_by.first_fold
        how = "each by models that had not learned from it" if is_blend else "which it has not learned from"
        score = METRICS[metric].text(first["validation" if is_blend else "first_fold"])
        facts[f"validation {metric}"] = f"{score} [dim]on {nodes:,} nodes, {how}[/]"
    facts["chosen by"] = str(chosen_by)
    facts["time"] = f"{duration(classifier.history_.seconds)} [dim]on {classifier.fitted_.prepared.device}[/]"
    return facts


def _as_json(classifier: "NodeClassifier", data: "Data", measured: "Measured", run: int) -> dict[str, Any]:
    """What came of training as plain values; ``test`` is ``None`` if no node was held back."""
    from gcnsl.evaluation.measured import graph_facts

    prepared, history, is_test = classifier.fitted_.prepared, classifier.history_, measured.kind == "test"
    (given, learned), method = graph_facts(classifier, data), _method_name(classifier)
    shares = {name: (share.nodes, share.right) for name, share in measured.learned.items()}
    shares["test"] = (measured.nodes, measured.metrics["accuracy"]) if is_test else (0, None)
    found = {
        "method": method,
        "graph": data.get("name") or "graph",
        "run": run,
        "device": str(prepared.device),
        "nodes": {name: nodes for name, (nodes, _) in shares.items()},
        "accuracy": {name: right for name, (_, right) in shares.items()},
        "features": prepared.features.in_words(prepared.graph),
        "test": measured.to_dict() if is_test else None,
        "epochs": len(history),
        "best_epoch": history.best_epoch,
        "stopped": history.stopped,
        "seconds": history.seconds,
        "original": asdict(given),
        "reconnected": learned and asdict(learned),
        "options": classifier.options if method == "auto" else prepared.method.options(),
    }
    if hasattr(classifier, "leaderboard_"):
        found |= {"leaderboard": classifier.leaderboard_.to_dict("records"), "chosen_by": str(classifier.chosen_by_)}
    return found


def _method_name(classifier: "NodeClassifier") -> str:
    """The method of a fitted model, ``auto`` for an ensemble."""
    from gcnsl.auto import AUTO, Blend

    return AUTO if isinstance(classifier.fitted_, Blend) else classifier.fitted_.prepared.method.name


def _print_next(classifier: "NodeClassifier", model: Path) -> None:
    """Name the commands that come next, ready to be copied."""
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = str(unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown])
    after_options = ["--"] if node.startswith("-") else []
    commands = (["predict", model, "-o", "predictions.csv"], ["explain", model, *after_options, node])
    say("Next", "".join(f"\n  gcnsl {in_shell(command)}" for command in commands), "bold", where=out)
