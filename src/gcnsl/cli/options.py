"""Options that several commands share, and the graph they name."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

GraphArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[GRAPH]", help="A dataset's name (see `gcnsl datasets`) or an npz file.", show_default=False
    ),
]
NodesOption = Annotated[Path | None, typer.Option(help="Your own graph: table of nodes (CSV, TSV or Parquet).")]
EdgesOption = Annotated[Path | None, typer.Option(help="Your own graph: table of edges.")]
IdOption = Annotated[
    str | None, typer.Option("--id", help="Column of --nodes with the ids. \\[default: id, or the first]")
]
LabelOption = Annotated[str | None, typer.Option(help="Column of --nodes with the classes. \\[default: label]")]
DropOption = Annotated[list[str] | None, typer.Option(help="Column of --nodes not to use; may be repeated.")]
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


def read_graph(
    *,
    graph: str | None,
    nodes: Path | None,
    edges: Path | None,
    id_column: str | None,
    label: str | None,
    drop: Iterable[str] | None,
    split: str | None,
    seed: int = 0,
    runs: int = 10,
    root: Path | None,
) -> "Data":
    """The graph that the options name, with masks wherever it has labels, unless ``split`` is None."""
    from gcnsl.datasets import load, with_random_split
    from gcnsl.graph import from_tables

    if (graph is None) == (nodes is None) or (nodes is None) != (edges is None):
        raise InputError("name one graph: a dataset (GRAPH), or both --nodes and --edges")
    if graph is not None:
        return load(graph, split=split, seed=seed, runs=runs, root=root)
    data = from_tables(nodes, edges, id=id_column, label=label, drop=list(drop or ()))
    data.name = nodes.stem if nodes is not None else None
    drawn = split is not None and data.y is not None and "train_mask" not in data
    return with_random_split(data, seed=seed, runs=runs) if drawn else data
