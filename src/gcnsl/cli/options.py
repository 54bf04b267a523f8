"""Options that several commands share; those that name a graph are in :mod:`gcnsl.cli.graph_source`."""

from pathlib import Path
from typing import Annotated

import typer

SplitOption = Annotated[
    str,
    typer.Option(
        help="random, geom-gcn, public (citation graphs) or stored (npz files); not for tables with a column `split`."
    ),
]
SeedOption = Annotated[int, typer.Option(help="Seed of the random splits.")]
TrainingSeedOption = Annotated[int, typer.Option("--seed", help="Seed of the random splits and of training.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A hyper-parameter; may be repeated.")
]
SearchedOption = Annotated[
    bool,
    typer.Option(
        "--searched", help="Start from what was searched for on this named graph, not from the paper's or the defaults."
    ),
]
SettingsOption = Annotated[Path | None, typer.Option(help="Start from a TOML file that `gcnsl search -o` wrote.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
PlotOption = Annotated[Path | None, typer.Option(help="Write a picture here (.png, .svg or .pdf).")]
ModelArgument = Annotated[Path, typer.Argument(help="The folder that `gcnsl train -o` wrote.", show_default=False)]
RootOption = Annotated[Path | None, typer.Option(help="Folder with dataset files, searched first.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
