"""Options that several commands share, and what ``--set`` says; :mod:`gcnsl.cli.graph_source` has those of graphs."""

import pkgutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.cli.console import busy
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.runs.executor import Executor


def refused_by(check: str) -> Callable[[Any], Any]:
    """A callback for Typer that refuses what a function refuses, before anything else is done.

    The function is loaded only then, or ``--help`` would have to wait for it.
    """

    def checked(value: Any) -> Any:
        if value is not None:
            pkgutil.resolve_name(check)(value)
        return value

    return checked


PANELS = {
    "Your own graph": "id_column name_column source_column target_column only drop categorical numeric unknown "
    "directed weight no_weight edge_type wide separator no_header encoding",
    "With auto": "quality single distil keep_validation",
    "Hyper-parameters": "options settings class_weight",
    "Decisions": "threshold positive coverage by_class",
    "Splits": "split split_columns fold_column folds run runs all_labels seed",
    "Output and resources": "plot checkpoint_every cluster jobs device root as_json quiet",
}
"""The parameters below each heading of ``--help``; others come first."""
_IS_MODEL = refused_by("gcnsl.storage:check_model")
MethodOption = Annotated[
    str, typer.Option(help="The method to use; `gcnsl options` lists them. Example: --method h2gcn-2.")
]
SplitOption = Annotated[
    str,
    typer.Option(
        help="How nodes are split: random, geom-gcn (graphs of the literature), public (citation graphs) or stored "
        "(npz files). A table with a column `split` brings its own; --split-columns, --fold-column and --folds go "
        "before."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        help="What chooses epochs, settings and methods; `gcnsl options` lists all. By default average-precision if "
        "at most 20 % of the labelled nodes are of the rarer of two classes, macro-f1 if at least 60 % are of one of "
        "more classes, else accuracy.",
        show_default=False,
    ),
]
ThresholdOption = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="From which probability on a node is of a class, chosen on nodes that were not learned from: f1, "
        "precision=.9, recall=.8, top=100 (alerts), cost=fn:10,fp:1, a probability, or none for the likeliest class. "
        "\\[default: f1 if average-precision decides]",
        show_default=False,
        callback=refused_by("gcnsl.training.decisions:check_rule"),
    ),
]
PositiveOption = Annotated[
    str | None,
    typer.Option(metavar="CLASS", help="The class of --threshold, against the rest. \\[default: the rarer of two]"),
]
ClassWeightOption = Annotated[
    str | None,
    typer.Option(
        help="Weights of the classes in the loss: balanced, so that rare ones count as much, or a table: yes=5,no=1."
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Seed of random splits and of training.",
        callback=refused_by("gcnsl.checks:check_seed"),
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set one; may be repeated. `gcnsl options METHOD` lists them."),
]
SettingsOption = Annotated[Path | None, typer.Option(help="Take them from this TOML file, which `gcnsl search` wrote.")]
DeviceOption = Annotated[
    str,
    typer.Option(help="Where to train: auto, cpu, cuda or cuda:N.", callback=refused_by("gcnsl.checks:check_device")),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
PlotOption = Annotated[
    Path | None,
    typer.Option(
        help="Draw a picture into this file (.png, .svg or .pdf).", callback=refused_by("gcnsl.pictures:check_picture")
    ),
]
PageOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write a page (.html): how good the model is, its mistakes, and reasons for them.",
        callback=refused_by("gcnsl.pictures:check_page"),
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(help="The folder that `gcnsl train -o` wrote.", show_default=False, callback=_IS_MODEL)
]
OptionalModelArgument = Annotated[
    Path | None,
    typer.Argument(
        help="The folder that `gcnsl train -o` wrote; without it, the page is about the paper's experiments.",
        metavar="[MODEL]",
        show_default=False,
        callback=_IS_MODEL,
    ),
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        help="Look for dataset files in this folder first.",
        callback=refused_by("gcnsl.datasets.benchmarks:check_root"),
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler do the work, such as tcp://10.0.0.1:8786. It needs gcnsl\\[cluster].",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def read_options(given: Iterable[str] | None) -> dict[str, Any]:
    """Strings ``key=value`` as a table; values are written as in TOML."""
    from gcnsl.options import read_assignments

    options = {}
    for text in given or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise InputError(f"--set {text!r} is not a setting: write KEY=VALUE, for example --set epochs=200")
        options[key] = value
    return read_assignments(options)


def with_class_weight(options: dict[str, Any], class_weight: str | None) -> dict[str, Any]:
    """The options with what ``--class-weight`` says, which is short for ``--set class_weight=...``."""
    return options if class_weight is None else {"class_weight": class_weight, **options}


def check_workers(cluster: str | None, jobs: int) -> None:
    """Refuse two answers to who does the work."""
    if cluster is not None and jobs > 1:
        raise InputError(f"--cluster {cluster} and --jobs {jobs} both say who does the work: give one of them")


@contextmanager
def workers(
    cluster: str | None, jobs: int = 1, *, quiet: bool, on_epoch: Callable[[Any, Any], None] | None = None
) -> Iterator["Executor"]:
    """The workers of the cluster at an address, or several processes, or this one, which tells its epochs."""
    executor: Executor
    if cluster is not None:
        with busy("Asking the cluster", quiet=quiet):
            from gcnsl.runs.cluster import Cluster

            executor = Cluster(cluster)
    elif jobs > 1:
        from gcnsl.runs.processes import Processes

        executor = Processes(jobs)
    else:
        from gcnsl.runs.executor import ThisProcess

        executor = ThisProcess(on_epoch)
    with executor:
        yield executor
