"""Options that several commands share, and what ``--set`` says; :mod:`gcnsl.cli.graph_source` has those of graphs."""

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.methods import Method


def refused_by(check: str) -> Callable[[Any], Any]:
    """A callback for Typer that refuses what a function refuses, before anything else is done.

    The function is loaded only then, or ``--help`` would have to wait for it.
    """

    def checked(value: Any) -> Any:
        if value is not None:
            pkgutil.resolve_name(check)(value)
        return value

    return checked


_IS_MODEL = refused_by("gcnsl.storage:check_model")
MethodOption = Annotated[
    str, typer.Option(help="The method to use; `gcnsl options` lists them. Example: --method h2gcn-2.")
]
SplitOption = Annotated[
    str,
    typer.Option(
        help="How nodes are split: random, geom-gcn (graphs of the literature), public (citation graphs) or stored "
        "(npz files). A table with a column `split` brings its own, and then runs differ in the seeds of the weights; "
        "--split-columns, --fold-column and --folds go before."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        help="What chooses epochs, settings and methods: accuracy, balanced-accuracy, macro-f1, roc-auc, "
        "average-precision, log-loss or calibration-error; `gcnsl options` explains them. By default it is accuracy, "
        "and epochs are chosen as the method's option `monitor` says.",
        show_default=False,
    ),
]
ClassWeightOption = Annotated[
    str | None,
    typer.Option(
        help="Weights of the classes in the loss: balanced, so that rare classes count as much as others, or a table "
        "such as yes=5,no=1."
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Seed of the random splits, and of training if there is any.",
        callback=refused_by("gcnsl.checks:check_seed"),
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a hyper-parameter; may be repeated. `gcnsl options METHOD` lists them."
    ),
]
SettingsOption = Annotated[
    Path | None, typer.Option(help="Take hyper-parameters from this TOML file, which `gcnsl search` wrote.")
]
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
        help="Write a page (.html) about the graph and the model: how good it is, its mistakes, and reasons for them.",
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
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def read_options(given: Iterable[str] | None) -> dict[str, Any]:
    """Strings ``key=value`` as a table; values are written as in TOML."""
    from gcnsl.options import read_assignments

    options = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--set {text!r} is not a setting: write KEY=VALUE, for example --set epochs=200")
        options[key.strip()] = value.strip()
    return read_assignments(options)


def with_class_weight(options: dict[str, Any], class_weight: str | None) -> dict[str, Any]:
    """The options with what ``--class-weight`` says, which is short for ``--set class_weight=...``."""
    return options if class_weight is None else {"class_weight": class_weight, **options}


def resolve_all(
    names: Iterable[str],
    benchmark: str | None,
    settings: Path | None,
    given: Mapping[str, Any],
    metric: str | None = None,
) -> "dict[str, Method]":
    """Methods by name, each with its hyper-parameters.

    Methods for which the settings file has nothing do without it, but it must have some for one of them. In ``given``,
    which is what ``--set`` says, ``key`` is for all methods and ``method.key`` for one; ``metric`` chooses epochs.
    """
    from gcnsl.methods import ALIASES, find_method, resolve
    from gcnsl.methods.resolver import read_settings

    names = [find_method(name).name for name in names]
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in given.items():
        whose, dot, option = key.rpartition(".")
        name = ALIASES.get(whose, whose)
        if dot and name not in options:
            raise InputError(f"--set {key}: {whose!r} is not compared; the models are {', '.join(options)}")
        for one in [name] if dot else options:
            options[one][option] = value
    having = set(names) if settings is None else set(names) & read_settings(settings).keys()
    if not having:
        raise InputError(f"{settings} has settings for none of {', '.join(names)}: give another file, or leave it out")
    return {
        name: resolve(
            name,
            benchmark=benchmark,
            settings=settings if name in having else None,
            options=options[name],
            metric=metric,
        )
        for name in names
    }
