"""The graph that a command is given: the options that name it, and how it is read."""

import csv
import functools
import inspect
import warnings
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.cli.console import listed, say
from gcnsl.errors import InputError, one_line

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.graph import ColumnEncoder
    from gcnsl.graph.tables import Table
    from gcnsl.methods import Method

KEEP = "--unknown ''"
"""The option by which no label but an empty cell means that the class is unknown."""
_SPLITS = {"split_columns": "--split-columns", "fold_column": "--fold-column", "folds": "--folds"}
_COLUMNS = ("id_column", "label", "name_column", "only", "drop", "categorical", "numeric", "unknown")
_EDGE_COLUMNS = ("weight", "source_column", "target_column", "edge_type")
_OTHER_OPTIONS = {"id_column": "--id", "source_column": "--source", "target_column": "--target"}
_OTHER_OPTIONS |= {"wide": "--features", "separator": "--sep", "name_column": "--name"}
IN_A_MODEL = (
    "only",
    "drop",
    "categorical",
    "numeric",
    "directed",
    "edge_type",
    "split_columns",
    "fold_column",
    "folds",
)
"""What a model knows of its columns and edges, or does not need any more."""


@dataclass(frozen=True)
class GraphSource:
    """What names a graph: a dataset, or a table of nodes and one of edges. Each field is an option of the command."""

    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAPH]",
            help="A dataset's name (`gcnsl datasets` lists them), `synthetic-h0.3`, or a graph file (.npz, .pt).",
            show_default=False,
        ),
    ] = None
    nodes: Annotated[
        list[Path] | None,
        typer.Option(
            help="Your own graph: the table of nodes (CSV, TSV or other text, Parquet, Feather, JSON lines; text also "
            "gz, xz, zip). Several are joined by their ids."
        ),
    ] = None
    edges: Annotated[
        list[Path] | None,
        typer.Option(help="Your own graph: the table of edges. Several are several kinds of edges."),
    ] = None
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column of --nodes with the ids. \\[default: id, or the first]")
    ] = None
    source_column: Annotated[
        str | None,
        typer.Option(
            "--source", help="The column of --edges with one end. \\[default: source, from, src, u, ..., or the first]"
        ),
    ] = None
    target_column: Annotated[
        str | None,
        typer.Option("--target", help="The other end. \\[default: target, to, dst, v, ..., or the second]"),
    ] = None
    label: Annotated[str | None, typer.Option(help="The column of --nodes with the classes. \\[default: label]")] = None
    name_column: Annotated[
        str | None, typer.Option("--name", help="The column of --nodes that says what to call them; no feature.")
    ] = None
    only: Annotated[
        list[str] | None, typer.Option(help="Columns of --nodes with the features; all others are left out.")
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns of both tables to leave out: `--drop a,b` or `--drop a --drop b`.")
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Columns that are categories, such as codes: `--categorical a,b`."),
    ] = None
    numeric: Annotated[list[str] | None, typer.Option(help="Columns that are numbers, though written as text.")] = None
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            help="Labels of nodes whose class is not known: `--unknown 0,?`. Empty cells always are. "
            "\\[default: -1, NA, null and the like]"
        ),
    ] = None
    directed: Annotated[
        bool, typer.Option("--directed", help="Keep the directions of the edges, from source to target, too.")
    ] = False
    weight: Annotated[
        str | None,
        typer.Option(help="The column of --edges with weights. \\[default: weight, if it is there]"),
    ] = None
    no_weight: Annotated[bool, typer.Option("--no-weight", help="Ignore a column `weight` of --edges.")] = False
    edge_type: Annotated[
        str | None, typer.Option(help="The column of --edges with their kinds, whatever it looks like.")
    ] = None
    wide: Annotated[
        Path | None,
        typer.Option(
            "--features",
            help="Further features, mostly 0: a matrix (.npz, .npy) with a row for each of --nodes, or a table "
            "with the columns node, feature and perhaps value.",
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option("--sep", help="What separates the cells of text files. \\[default: guessed from the first lines]"),
    ] = None
    no_header: Annotated[
        str | None,
        typer.Option(help="Which text files have no header: nodes, edges, both or none. \\[default: guessed]"),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="The encoding of text files, such as cp1252. \\[default: guessed]")
    ] = None
    split_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of --nodes with given splits, separated by commas, one run each, with the values train, val, "
            "test or nothing. Without validation nodes, 40 % of the training nodes are drawn. \\[default: split, if "
            "there is one]"
        ),
    ] = None
    fold_column: Annotated[
        str | None,
        typer.Option(
            help="Cross-validation: the column of --nodes with the number of each node's fold, tested in turn."
        ),
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Cross-validation with so many folds of each class; 40 % of the rest are validation."),
    ] = None

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
        words, flags = list[str](), list[str]()
        for field in fields(self):
            value, option = getattr(self, field.name), _option(field.name)
            if value is True:
                flags.append(option)
            elif field.name == "graph" and value is not None:
                words.append(value)
            elif value is not None and value is not False:
                values = value if isinstance(value, list) else [value]
                words += [part for each in values for part in (option, str(each))]
        return words + flags

    def check(self, split: str | None) -> None:
        """Refuse what can be refused before torch is loaded: options, names of graphs, files and columns."""
        from gcnsl.checks import check_choice
        from gcnsl.datasets.benchmarks import SPLITS, check_graph

        if (self.graph is None) == (self.nodes is None) or (self.nodes is None) != (self.edges is None):
            raise InputError("name one graph: a dataset (GRAPH), or both --nodes and --edges")
        if self.weight is not None and (self.no_weight or self.graph is not None):
            column = f"--weight {self.weight} names a column of --edges"
            raise InputError(f"{column} and goes neither with GRAPH nor with --no-weight: leave one out")
        if self.no_header is not None:
            check_choice("no_header", self.no_header, ("nodes", "edges", "both", "none"))
        if self.separator is not None and len(self.separator.replace("\\t", "\t")) != 1:
            raise InputError(f"--sep {self.separator} is not one character: give it as `--sep ';'`")
        how = [option for name, option in _SPLITS.items() if getattr(self, name) is not None]
        if len(how) > 1:
            raise InputError(f"{' and '.join(how)} both say how nodes are split: give one of them")
        if split is not None:
            check_choice("split", split, SPLITS)
        if self.nodes is not None and self.edges is not None:
            self._check_columns(self.nodes, self.edges)
            return
        if how not in ([], ["--folds"]):
            unfit = f"{how[0]} names columns of --nodes, and {self.graph} has none"
            raise InputError(f"{unfit}: leave it out, or use --folds")
        for name in (*_COLUMNS, *_EDGE_COLUMNS, "wide", "separator", "no_header", "encoding"):
            if getattr(self, name):
                unfit = f"{_option(name)} is about the table --nodes or --edges, and {self.graph} has none"
                raise InputError(f"{unfit}: leave it out")
        check_graph(self.graph, split=None if self.folds else split, directed=self.directed)

    def _check_columns(self, nodes: list[Path], edges: list[Path]) -> None:
        """Columns that an option names must be there; only the first rows of the tables are read."""
        from gcnsl.graph.tables import ENDS, check_ends, read_table

        written: Any = {"written": self._written, "head": True}
        node_tables = [read_table(path, "nodes", **written) for path in nodes]
        ends: Any = {"unnamed": ENDS[0], "are_ids": lambda cells: False}  # the ids are not read yet
        edge_tables = [read_table(path, "edges", **ends, **written) for path in edges]
        for table in node_tables:
            if not table.arrow.num_rows:
                raise InputError(f"{table.name} has no rows: the graph is empty; give at least one node")
        for table in edge_tables:
            check_ends(table, self.source_column, self.target_column)
        all_nodes, both = _beside(node_tables), _beside([*node_tables, *edge_tables])
        for name in ("id_column", "name_column", "fold_column"):
            if getattr(self, name) is not None:
                all_nodes.check_column(getattr(self, name), name)
        all_nodes.find_label(self.label)
        for name in ("split_columns", "only", "drop", "categorical", "numeric"):
            for column in names_in(getattr(self, name)):
                (all_nodes if name in ("split_columns", "only") else both).check_column(column, name)
        for name in ("weight", "edge_type"):
            if getattr(self, name) is not None:
                _beside(edge_tables).check_column(getattr(self, name), name)

    @property
    def _written(self) -> Any:
        from gcnsl.graph.tables import Written

        separator = None if self.separator is None else self.separator.replace("\\t", "\t")
        return Written(separator, self.encoding, self.no_header)

    def read(
        self,
        *,
        split: str | None,
        root: Path | None,
        seed: int = 0,
        runs: int = 10,
        encoder: "ColumnEncoder | None" = None,
    ) -> "Data":
        """The graph, with masks if it has labels, unless ``split`` is None; ``encoder`` is that of a model."""
        from gcnsl.checks import UNLABELLED
        from gcnsl.datasets import load, with_folds, with_random_split
        from gcnsl.graph.masks import MASKS, with_validation

        if self.graph is not None:
            wanted = None if self.folds else split
            data = load(self.graph, split=wanted, directed=self.directed, seed=seed, runs=runs, root=root)
        else:
            data = self._read_tables(encoder)
        if split is None or data.y is None or (data.y == UNLABELLED).all():
            return data
        if self.folds or self.fold_column:
            return with_folds(data, self.folds or data.fold, seed=seed)
        if "train_mask" not in data:
            return with_random_split(data, seed=seed, runs=runs)
        data.update(with_validation({name: data[name] for name in MASKS if name in data}, data.y, seed))
        return data

    def _read_tables(self, encoder: "ColumnEncoder | None") -> "Data":
        from gcnsl.graph import from_tables
        from gcnsl.graph.labels import UnknownLabelsWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownLabelsWarning)  # commands say it with their own option
            data = from_tables(
                self.nodes,
                self.edges,
                id=self.id_column,
                label=self.label,
                name=self.name_column,
                split=None if self.split_columns is None else names_in(self.split_columns),
                fold=self.fold_column,
                features=None if self.only is None else names_in(self.only),
                drop=names_in(self.drop),
                categorical=names_in(self.categorical),
                numeric=names_in(self.numeric),
                unknown=None if self.unknown is None else names_in(self.unknown),
                encoder=encoder,
                weight=False if self.no_weight else self.weight,
                directed=self.directed,
                wide=self.wide,
                source=self.source_column,
                target=self.target_column,
                edge_type=self.edge_type,
                **self._written._asdict(),
            )
        data.name = None if self.nodes is None else _name_of(self.nodes[0])
        return data

    def like(self, graph: "Data") -> "GraphSource":
        """The same source, read as a model's graph was: directions, weights, and which labels count as unknown."""
        weight = self.weight or (graph.get("weight_column") if self.nodes is not None and not self.no_weight else None)
        without = self.no_weight or (weight is None and "edge_weight" not in graph)
        unknown = self.unknown
        if unknown is None and self.nodes is not None and "unknown" in graph:
            unknown = [listed(graph.unknown)]
        name = self.name_column or (graph.get("name_column") if self.nodes is not None else None)
        how: dict[str, Any] = {"weight": weight, "no_weight": without, "unknown": unknown, "name_column": name}
        return replace(self, directed="arc_index" in graph, **how)

    def read_labelled(self, *, split: str, root: Path | None, seed: int = 0, runs: int = 10) -> "Data":
        """The graph with labels and masks; an error if it has no labels. Says which columns are not used."""
        from gcnsl.checks import UNLABELLED
        from gcnsl.graph.labels import is_often_unknown, unknown_in_words
        from gcnsl.graph.summary import harms

        data = self.read(split=split, root=root, seed=seed, runs=runs)
        for note in data.get("notes") or ():
            say("Note", one_line(note), "cyan")
        for sentence in islice(harms(data), 3):
            say("Warning", one_line(sentence), "yellow")
        counts = data.get("counted_unknown") or {}
        if self.unknown is None and data.y is not None and is_often_unknown(counts, int((data.y != UNLABELLED).sum())):
            say("Warning", unknown_in_words(counts, KEEP), "yellow")
        if "columns" in data and data.columns.left_out:
            names = one_line(", ".join(data.columns.left_out))
            say("Left out", f"{names} (`gcnsl inspect` says why)", "yellow")
        if "train_mask" not in data:
            raise InputError("the graph has no labels: name the column that holds the classes (--label), and fill it")
        return data


def _option(field: str) -> str:
    return _OTHER_OPTIONS.get(field, f"--{field.replace('_', '-')}")


def _beside(tables: "list[Table]") -> "Table":
    """A table of no rows with the columns of several."""
    import pyarrow as pa

    from gcnsl.graph.tables import Table

    names = dict.fromkeys(name for table in tables for name in table.columns)
    return Table(pa.table({name: pa.nulls(0) for name in names}), " and ".join(table.name for table in tables))


def names_in(values: list[str] | str | None) -> list[str]:
    """Names that are separated by commas; a name with a comma in it is put in quotes, as in a CSV file."""
    lines = [values] if isinstance(values, str) else values or ()
    return [name for line in lines for name in next(csv.reader([line], skipinitialspace=True))]


def suited_metric(data: "Data", given: str | None, *, quiet: bool) -> str | None:
    """The metric that decides: the given one or, if accuracy would mislead, the one that suits the classes; says so.

    ``None`` for accuracy that nobody asked for: each method then chooses epochs as its literature does.
    """
    from gcnsl.checks import UNLABELLED
    from gcnsl.graph import split_masks
    from gcnsl.training import choose_metric

    masks = split_masks(data, 0, need=())
    shown = data.y.where(masks["train"] | masks["val"], data.y.new_tensor(UNLABELLED))
    choice = choose_metric(shown, data.class_names)
    if given is not None or choice.metric == "accuracy":
        return given
    if not quiet:
        say("Metric", f"{choice.metric}, since {choice.reason}; --metric chooses another", "cyan")
    return choice.metric


def remark(data: "Data", methods: "Iterable[Method]") -> None:
    """Say what of the edges some methods do not use."""
    by_facts: dict[str, list[str]] = {}
    for method in methods:
        by_facts.setdefault(" and ".join(method.unused(data)), []).append(method.name)
    sentences = [
        f"{', '.join(names)} {'do' if len(names) > 1 else 'does'} not use the edges' {facts}"
        for facts, names in by_facts.items()
        if facts
    ]
    if sentences:
        say("Note", "; ".join(sentences), "cyan")


def _name_of(nodes: Path) -> str:
    """What to call the graph of a table: the folder's name if the file's says no more than that it holds nodes."""
    stem = nodes.name.partition(".")[0] or nodes.name
    return (stem.lower() in ("nodes", "node", "vertices") and nodes.resolve().parent.name) or stem


def takes_graph(command: Callable[..., None], *, without: Container[str] = ()) -> Callable[..., None]:
    """Show Typer, in place of a command's parameter ``source``, the options of :class:`GraphSource`, but for some."""
    fields = inspect.signature(GraphSource).parameters
    options = {name: option for name, option in fields.items() if name not in without}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        shown += options.values() if parameter.name == "source" else [parameter]

    @functools.wraps(command)
    def gathered(**given: Any) -> None:
        source = GraphSource(**{name: given.pop(name) for name in options})
        if source.is_given or not without:  # a model has its graph with it
            source.check(given.get("split"))
        command(source=source, **given)

    gathered.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return gathered
