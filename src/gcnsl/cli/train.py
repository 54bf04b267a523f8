"""``gcnsl train``."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from gcnsl.cli.app import app, say
from gcnsl.cli.assignments import read_options
from gcnsl.cli.console import busy, epochs_shown, out, percent, print_json
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.shared_options import (
    DeviceOption,
    JsonOption,
    MethodOption,
    QuietOption,
    RootOption,
    SetOption,
    SettingsOption,
    SplitOption,
    TrainingSeedOption,
)
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation.training_report import GraphFacts, TrainingReport

ONLY_WHEN_INTERRUPTED = sys.maxsize
"""Epochs between two checkpoints if none was asked for: Ctrl-C still writes one."""
CROWDED = 0.5
"""A learned graph that joins a larger share of all pairs of nodes is remarked on."""


@app.command()
@takes_graph
def train(
    source: GraphSource,
    method: MethodOption = "gcn-sl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the model in this folder; an older model is replaced.")
    ] = None,
    split: SplitOption = "random",
    run: Annotated[int, typer.Option(min=0, help="Which of the splits to train on, counted from 0.")] = 0,
    all_labels: Annotated[
        bool,
        typer.Option("--all-labels", help="Learn from test nodes too, and hold nothing back: the model for later use."),
    ] = False,
    options: SetOption = None,
    settings: SettingsOption = None,
    seed: TrainingSeedOption = 0,
    device: DeviceOption = "auto",
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Save the run beside the model every so many epochs: if it is killed, it continues from there."
        ),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a method on a graph's labelled nodes, test it on nodes that are held back, and save it.

    Hyper-parameters are those of --set, then of --settings, then those published for a graph of the literature, then
    the method's defaults.

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --set epsilon=0.8 --set rounds=1[/]
    """
    chosen = read_options(options)
    checkpoint = _checkpoint(output, checkpoint_every)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation.training_report import report_on
        from gcnsl.methods import resolve

        resolved = resolve(method, benchmark=source.benchmark, settings=settings, options=chosen)
        data = source.read_labelled(split=split, seed=seed, runs=max(run + 1, 10), root=root)
    if checkpoint is not None and checkpoint.exists() and not quiet:
        say("Continuing", f"from {checkpoint}", "cyan")
    with epochs_shown(quiet=quiet) as show:
        classifier = NodeClassifier(
            resolved.name,
            **resolved.options(),
            random_state=seed,
            device=device,
            checkpoint=checkpoint,
            checkpoint_every=ONLY_WHEN_INTERRUPTED if checkpoint_every is None else checkpoint_every,
            on_epoch=show,
        )
        classifier.fit_graph(data, run=run, all_labels=all_labels, root=root)
    if output is not None:
        classifier.save(output)
    report = report_on(classifier, data, run=run)
    if as_json:
        print_json(asdict(report) | {"saved": None if output is None else str(output)})
        return
    _print_report(report, output)
    _print_next(classifier, output)


def _checkpoint(output: Path | None, every: int | None) -> Path | None:
    """The file beside the model that keeps an unfinished run."""
    if output is None:
        if every is not None:
            raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
        return None
    from gcnsl.storage import check_place

    check_place(output)
    return output.with_name(f"{output.name}.checkpoint")


def _print_report(report: "TrainingReport", output: Path | None) -> None:
    facts = Table(title=f"{report.method} on {report.graph}", show_header=False, title_style="bold")
    facts.add_column(style="cyan")
    facts.add_column()
    titles = {"test": "test accuracy", "val": "validation", "train": "training"}
    for part, title in titles.items():
        share, count = report.accuracy[part], report.nodes[part]
        text = "–  [dim]no node was held back[/]" if share is None else f"{percent(share)} [dim]of {count:,} nodes[/]"
        facts.add_row(title, text, style="bold" if part == "test" else "")
    why = {"patience": "none was better for long enough", "epochs": "the last one allowed"}[report.stopped]
    facts.add_row("epochs", f"{report.epochs}, the best is {report.best_epoch} [dim]({why})[/]")
    facts.add_row("time", f"{report.seconds:.1f} s [dim]on {report.device}[/]")
    facts.add_row("given graph A", _graph(report.original))
    if report.reconnected is not None:
        facts.add_row("learned graph A*", _graph(report.reconnected))
    facts.add_row("saved in", "nowhere [dim](-o FOLDER saves it)[/]" if output is None else str(output))
    out.print(facts)


def _graph(facts: "GraphFacts") -> str:
    agreement = "–" if facts.homophily is None else f"{facts.homophily:.2f}"
    remark = f" [yellow]({facts.density:.0%} of all pairs: it tells little)[/]" if facts.density > CROWDED else ""
    return f"{facts.edges:,} edges, homophily {agreement}{remark}"


def _print_next(classifier: "NodeClassifier", output: Path | None) -> None:
    """Name the commands that come next, ready to be copied."""
    if output is None:
        return
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown]
    model = shlex.quote(str(output))
    out.print("Next:", style="bold")
    for command in (f"predict {model} -o predictions.csv", f"explain {model} {shlex.quote(str(node))}"):
        out.print(f"  gcnsl {command}", highlight=False, markup=False, soft_wrap=True)
