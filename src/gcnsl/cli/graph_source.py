"""The graph that a command is given: the options that name it, and how it is read."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class GraphSource:
    """What names a graph: a dataset, or a table of nodes and one of edges. Each field is an option of the command."""

    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAPH]",
            help="A dataset's name (`gcnsl datasets` lists them), `synthetic-h0.3`, or an npz file.",
            show_default=False,
        ),
    ] = None
    nodes: Annotated[Path | None, typer.Option(help="Your own graph: the table of nodes (CSV, TSV or Parquet).")] = None
    edges: Annotated[Path | None, typer.Option(help="Your own graph: the table of edges.")] = None
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column of --nodes with the ids. \\[default: id, or the first]")
    ] = None
    label: Annotated[str | None, typer.Option(help="The column of --nodes with the classes. \\[default: label]")] = None
    drop: Annotated[list[str] | None, typer.Option(help="A column of --nodes to leave out; may be repeated.")] = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options says which graph."""
        return any(place is not None for place in (self.graph, self.nodes, self.edges))

    @property
    def benchmark(self) -> str | None:
        """The graph's name, if it is one that the package knows; a table is never one, whatever its file is called."""
        from gcnsl.datasets import is_known

        return self.graph if self.graph is not None and is_known(self.graph) else None

    @property
    def arguments(self) -> list[str]:
        """The arguments that name the graph, for another command."""
        named = {"--nodes": self.nodes, "--edges": self.edges, "--id": self.id_column, "--label": self.label}
        given = [(option, value) for option, value in named.items() if value is not None]
        given += [("--drop", column) for column in self.drop or ()]
        return [*filter(None, [self.graph]), *(str(part) for pair in given for part in pair)]

    def read(self, *, split: str | None, root: Path | None, seed: int = 0, runs: int = 10) -> "Data":
        """The graph, with masks if it has labels, unless ``split`` is None."""
        from gcnsl.datasets import load, with_random_split
        from gcnsl.graph import from_tables

        if (self.graph is None) == (self.nodes is None) or (self.nodes is None) != (self.edges is None):
            raise InputError("name one graph: a dataset (GRAPH), or both --nodes and --edges")
        if self.graph is not None:
            return load(self.graph, split=split, seed=seed, runs=runs, root=root)
        data = from_tables(self.nodes, self.edges, id=self.id_column, label=self.label, drop=self.drop or [])
        data.name = None if self.nodes is None else _name_of(self.nodes)
        drawn = split is not None and data.y is not None and "train_mask" not in data
        return with_random_split(data, seed=seed, runs=runs) if drawn else data

    def read_labelled(self, *, split: str, root: Path | None, seed: int = 0, runs: int = 10) -> "Data":
        """The graph with labels and masks; an error if it has no labels."""
        data = self.read(split=split, root=root, seed=seed, runs=runs)
        if "train_mask" not in data:
            raise InputError("the graph has no labels: name the column that holds the classes (--label), and fill it")
        return data


def _name_of(nodes: Path) -> str:
    """What to call the graph of a table: the folder's name if the file's says no more than that it holds nodes."""
    says_nothing = nodes.stem.lower() in ("nodes", "node", "vertices")
    return (says_nothing and nodes.resolve().parent.name) or nodes.stem


def takes_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Show Typer, in place of a command's parameter ``source``, the options of :class:`GraphSource`."""
    options = inspect.signature(GraphSource).parameters
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        shown += options.values() if parameter.name == "source" else [parameter]

    @functools.wraps(command)
    def gathered(**given: Any) -> None:
        source = GraphSource(**{name: given.pop(name) for name in options})
        command(source=source, **given)

    gathered.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return gathered
