"""``gcnsl train``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.model_saving import reserve
from gcnsl.cli.shared_options import read_options, with_class_weight
from gcnsl.cli.torchrun import take_part
from gcnsl.cli.train_auto import AutoRequest, train_best
from gcnsl.cli.train_one import OneRequest, train_one
from gcnsl.cli.worker_options import ClusterOption
from gcnsl.errors import InputError


@app.command()
@takes_graph
def train(
    context: typer.Context,
    source: GraphSource,
    method: Annotated[
        str,
        typer.Option(
            help="The method to use, which `gcnsl options` lists; auto tries many and keeps an ensemble of the best."
        ),
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the model in this folder; an older model is replaced.")
    ] = None,
    split: shared.SplitOption = "random",
    run: Annotated[
        int,
        typer.Option(
            min=0,
            help="Which of the splits to train on, counted from 0; after the last of them the first follows again. The "
            "number is added to the seed of the weights.",
        ),
    ] = 0,
    all_labels: Annotated[
        bool,
        typer.Option("--all-labels", help="Learn from test nodes too, and hold nothing back: the model for later use."),
    ] = False,
    metric: shared.MetricOption = None,
    class_weight: shared.ClassWeightOption = None,
    options: shared.SetOption = None,
    settings: shared.SettingsOption = None,
    seed: shared.SeedOption = 0,
    device: shared.DeviceOption = "auto",
    minutes: Annotated[
        float | None,
        typer.Option(
            help="End training after so many minutes, with the best until then. With auto, 1, 5 or 30 by --quality."
        ),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(help="With auto, how much is tried: fast, good or best. \\[default: good]", show_default=False),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="With auto, repeat everything on so many splits, to know its own spread.")
    ] = 1,
    single: Annotated[
        bool, typer.Option("--single", help="With auto, keep the best single model instead of an ensemble.")
    ] = False,
    distil: Annotated[
        str | None,
        typer.Option(help="With auto, keep one model of this method that has learned what the ensemble predicts."),
    ] = None,
    keep_validation: Annotated[
        bool,
        typer.Option("--keep-validation", help="With auto, choose by the validation nodes and never learn from them."),
    ] = False,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Save the run beside the model every so many epochs: if it is killed, it continues from there."
        ),
    ] = None,
    cluster: ClusterOption = None,
    plot: shared.PlotOption = None,
    page: shared.PageOption = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train the best model for a graph on its labelled nodes, test it on nodes that are held back, and save it.

    By default, many methods are tried for five minutes, and an ensemble of the best is kept; a leaderboard shows all of
    them. With --method, only this one is trained.

    Hyper-parameters are those of --set, then of --settings, then those published for a graph of the literature, then
    the method's defaults. Ctrl-C ends training with the best model so far; the same command continues it. All metrics
    on the test nodes are printed, and each class; --plot draws which classes are taken for which, and whether
    probabilities can be believed. --report writes a page with all of this, the mistakes and the reasons for them.

    Example: [bold]gcnsl train debian --minutes 2 -o model[/]

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --metric average-precision[/]

    Example: [bold]torchrun --nproc-per-node 4 -m gcnsl train --nodes n.csv --edges e.csv --method gcn-sl-plus[/]

    Example: [bold]gcnsl train squirrel -o model --cluster tcp://10.0.0.1:8786[/]
    """
    own_device = take_part(context, method, device)
    if own_device is None:
        return
    request: dict[str, Any] = {
        "output": output,
        "resumable": output is not None and reserve(context, output),
        "split": split,
        "run": run,
        "all_labels": all_labels,
        "seed": seed,
        "device": own_device,
        "minutes": minutes,
        "plot": plot,
        "page": page,
        "root": root,
        "as_json": as_json,
        "quiet": quiet,
    }
    for_auto = {"quality": quality, "single": single, "distil": distil, "keep_validation": keep_validation}
    if method == "auto":
        _refuse(method, {"--set": options, "--settings": settings, "--checkpoint-every": checkpoint_every})
        given = for_auto | {"metric": metric, "class_weight": class_weight}
        chosen = {name: value for name, value in given.items() if value}
        train_best(source, AutoRequest(**request, runs=runs, settings=chosen, cluster=cluster))
        return
    named = {f"--{name.replace('_', '-')}": value for name, value in for_auto.items()}
    _refuse(method, named | {"--runs": runs > 1, "--cluster": cluster})
    if output is None and checkpoint_every is not None:
        raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
    chosen = with_class_weight(read_options(options), class_weight)
    train_one(
        source,
        OneRequest(
            **request,
            method=method,
            options=chosen,
            settings=settings,
            metric=metric,
            checkpoint_every=checkpoint_every,
        ),
    )


def _refuse(method: str, options: Mapping[str, object]) -> None:
    """Raise an error if an option was given that means nothing for the method."""
    for name, value in options.items():
        if value:
            whose = "one method: name it with --method" if method == "auto" else "auto: leave out --method"
            raise InputError(f"{name} is for {whose}, or leave out {name}")
