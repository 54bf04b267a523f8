"""Turns the columns of a table into features, as it learned from the training rows.

- Numbers, booleans and dates stay one feature each, in their own unit where float32 can tell their values apart; else
  (timestamps, very large or small numbers) as their distance from an origin, in a unit that fits. Where a value is
  missing it is the median of the training rows, and if values are missing in training rows, another feature marks them.
- A date has further features for those of year, month, weekday and hour that vary in the training rows.
- A list becomes one feature of 0 and 1 per token, and a text the features of :mod:`gcnsl.graph.text_columns`.
- A category becomes one feature of 0 and 1 per level that at least :data:`MIN_FREQUENCY` training rows have, for up to
  :data:`MOST_LEVELS` of them. Other levels are rare and share one feature, and so do rows without a value. A level that
  no training row has counts as rare; if no training row has a rare level, all features of the category are 0 for it.

What is learned is a few plain values, which are saved with a model.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import LARGEST_FLOAT
from gcnsl.errors import ColumnError
from gcnsl.graph.columns import Columns, is_number, is_used, sort_of
from gcnsl.graph.relations import Relations
from gcnsl.graph.text_columns import TextEncoder
from gcnsl.graph.wide_features import aligned
from gcnsl.graph.written_values import tokens_of
from gcnsl.sparse import SPARSE_SHARE, from_scipy

_USUAL = {"year": (2000, 20), "month": (6.5, 3.5), "weekday": (3, 2), "hour": (11.5, 7)}
"""The usual mean and deviation of parts of a date, for features that methods do not standardise."""
MIN_FREQUENCY = 3
"""A level that fewer training rows have is rare: one or two rows can't tell what it means."""
MOST_LEVELS = 255
"""Of more levels, the most frequent are kept and the others are rare, so that features stay few enough to be dense."""
LARGEST_DENSE = 2**27
"""So many entries of a matrix with quantities, most of them 0, are kept dense."""
FINEST = 2.0**12
"""float32 must tell at least so many values apart between the smallest and the largest value of a column."""
SMALLEST_SPREAD, LARGEST_VALUE = 1e-30, 1e30
"""Columns with a smaller spread or larger values, squares of which float32 can't hold, are given in another unit."""

Floats = NDArray[np.float64]


def year(stamps: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The year."""
    return stamps.astype("M8[Y]").astype(np.int64) + 1970


def month(stamps: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The month, 1 to 12."""
    return stamps.astype("M8[M]").astype(np.int64) % 12 + 1


def weekday(stamps: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The day of the week, Monday being 0."""
    return (stamps.astype("M8[D]").astype(np.int64) + 3) % 7


def hour(stamps: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The hour of the day."""
    return stamps.astype("M8[h]").astype(np.int64) % 24


CALENDAR = {part.__name__: part for part in (year, month, weekday, hour)}
"""What a date tells besides the time that has passed."""


def fit_float32(low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Whether float32 can hold columns of these ranges (d each) and tell their values apart; not if a bound is NaN."""
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
        is_fine = (spread == 0) | (spread >= np.maximum(SMALLEST_SPREAD, largest * FINEST * 2.0**-24))
    fits: NDArray[np.bool_] = (largest <= LARGEST_VALUE) & is_fine
    return fits


@dataclass(frozen=True)
class Levels:
    """The levels of a category that have a feature each, in order; then, if there are such rows, missing and rare."""

    texts: list[str]
    missing: bool
    rare: bool

    @classmethod
    def learn(cls, codes: NDArray[np.int64], texts: pa.Array) -> Levels:
        """Find the levels of these rows, given as :meth:`Columns.levels` returns them."""
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        frequent = np.flatnonzero(counts >= MIN_FREQUENCY)
        by_count = sorted(zip(-counts[frequent], texts.take(pa.array(frequent)).to_pylist(), strict=True))
        kept = sorted(text for _, text in by_count[:MOST_LEVELS])
        return cls(kept, bool((codes < 0).any()), bool((counts > 0).sum() > len(kept)))

    def __len__(self) -> int:
        return len(self.texts) + self.missing + self.rare

    def features(self, codes: NDArray[np.int64], texts: pa.Array) -> NDArray[np.int64]:
        """Return which of the features is 1 in each row (n); -1 for none."""
        rare = len(self) - 1 if self.rare else -1
        found = pc.index_in(texts, value_set=pa.array(self.texts, texts.type)).fill_null(rare).to_numpy()
        return np.append(found, len(self.texts) if self.missing else rare)[codes].astype(np.int64)

    def names(self, column: str) -> list[str]:
        """Return the names of the features."""
        others = {"missing": self.missing, "rare": self.rare}
        return [f"{column}={text}" for text in self.texts] + [f"{column} ({o})" for o, there in others.items() if there]


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """What was learned from the training rows of a table; see the module.

    Attributes:
        kinds: The kinds of the columns that become features.
        medians: The median of each column that is not a category, in its own unit.
        gaps: Which of these columns have missing values in training rows.
        levels: The levels of each category.
        origins, units: A value v of these columns is the feature (v - origin) / unit.
        parts: The names in :data:`CALENDAR` of the further features of each date.
        tokens: The tokens of each list that have a feature.
        texts: The encoder of each column of text.
        edge_kinds: The kinds of the columns of edges that some columns are made of.
        wide, wide_column: The names of the features that are mostly 0, and what they are together called.
        relations: The kinds of edges that are told apart, if there are several.
    """

    kinds: dict[str, str]
    medians: Floats
    gaps: NDArray[np.bool_]
    levels: dict[str, Levels]
    origins: Floats
    units: Floats
    parts: dict[str, list[str]] = field(default_factory=dict)
    tokens: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, TextEncoder] = field(default_factory=dict)
    edge_kinds: dict[str, str] = field(default_factory=dict)
    wide: list[str] = field(default_factory=list)
    wide_column: str = ""
    relations: Relations | None = None

    @classmethod
    def fit(cls, columns: Columns, rows: NDArray[np.bool_] | None = None) -> ColumnEncoder:
        """Learn from the rows in a mask (n); ``None`` for all."""
        chosen = np.ones(len(columns), dtype=bool) if rows is None else rows
        kinds = columns.used
        numeric = [name for name, kind in kinds.items() if is_number(kind)]
        numbers = columns.matrix({name: kinds[name] for name in numeric})[chosen]
        coded = {name: columns.levels(name) for name, kind in kinds.items() if kind == "category"}
        levels = {name: Levels.learn(codes[chosen], texts) for name, (codes, texts) in coded.items()}
        medians = _medians(numbers)
        parts, tokens, texts = dict[str, list[str]](), dict[str, list[str]](), dict[str, TextEncoder]()
        for name in filter(columns.is_on_calendar, numeric):
            stamps = _stamps(numbers[:, numeric.index(name)])
            varying = [part for part, value in CALENDAR.items() if len(np.unique(value(stamps[~np.isnat(stamps)]))) > 1]
            parts |= {name: varying} if varying else {}
        for name, kind in kinds.items():
            if sort_of(kind) in ("list", "text"):
                known = [
                    text for text, is_chosen in zip(columns.texts(name), chosen, strict=True) if is_chosen and text
                ]
                if kind == "text":
                    texts[name] = TextEncoder.fit(known)
                else:
                    counts = Counter(token for text in known for token in set(tokens_of(text, kind.partition(" ")[2])))
                    often = sorted((-count, token) for token, count in counts.items() if count >= MIN_FREQUENCY)
                    tokens[name] = sorted(token for _, token in often[:MOST_LEVELS])
        scales = _scales(numbers, medians) if columns.wide is None else _moments(numbers)
        gaps = np.asarray(np.isnan(numbers).any(axis=0))
        wide = ([], "") if columns.wide is None else (columns.wide.names, columns.wide.column)
        edge_kinds, relations = columns.edge_kinds, columns.relations
        return cls(kinds, medians, gaps, levels, *scales, parts, tokens, texts, edge_kinds, *wide, relations)

    @classmethod
    def for_numbers(cls, names: Sequence[str], x: NDArray[np.float32]) -> ColumnEncoder:
        """The encoder of a table of complete numbers that float32 can hold, from its training rows (k × d)."""
        none, ones = np.zeros(len(names)), np.ones(len(names))
        return cls(dict.fromkeys(names, "number"), _medians(x), none.astype(bool), {}, none, ones)

    def transform(self, columns: Columns) -> Tensor:
        """Encode all rows (n × d, float32) in a dense tensor, or in CSR if most entries are 0 and none is a quantity.

        Quantities are standardised later, and that needs a dense matrix.

        Raises:
            InputError: If a column is missing or has a value of another kind.
        """
        numbers, ones = self._numbers(columns), sp.hstack([self._one_hot(columns), *self._multi_hot(columns)])
        texts = [encoder.transform(columns.texts(name)) for name, encoder in self.texts.items()]
        others = [*self._calendar(columns), *texts]
        has_quantities = any(sort_of(kind) in ("number", "date", "text") for kind in self.kinds.values())
        size = len(columns) * len(self.feature_names)
        if self.wide_column:
            wide = aligned(columns.wide, self.wide_column, self.wide)
            is_sparse = wide.nnz <= SPARSE_SHARE * size and not (has_quantities and size <= LARGEST_DENSE)
            ones = sp.hstack([ones, *map(sp.csr_array, others), wide])
            others = []
        else:
            few = len(self.kinds) <= SPARSE_SHARE * len(self.feature_names)
            is_sparse = bool(self.levels or self.tokens) and few and not has_quantities
        if is_sparse:
            return from_scipy(sp.hstack([sp.csr_array(numbers), ones], format="csr"))
        return torch.from_numpy(np.hstack([numbers, ones.toarray(), *others]))

    def attributes(self, columns: Columns) -> dict[str, Any]:
        """The attributes of a graph with these columns: ``x``, ``feature_names``, ``columns`` and ``encoder``."""
        x, names = self.transform(columns), self.feature_names
        return {"x": x, "feature_names": names, "columns": columns, "encoder": self}

    @property
    def feature_names(self) -> list[str]:
        """The names of the features (d)."""
        return [name for _, name in self._features]

    @property
    def feature_columns(self) -> list[str]:
        """The column of the table that each feature comes from (d)."""
        return [column for column, _ in self._features]

    @property
    def categories(self) -> list[str]:
        """The columns that are categories, lists or texts: in a file they are text, even if they look like numbers."""
        return [*self.levels, *self.tokens, *self.texts]

    def own_units(self, features: NDArray[Any]) -> Floats:
        """Features of a node (d) in the units of their columns."""
        values = features.astype(np.float64)
        count = len(self._numeric)
        values[:count] = values[:count] * self.units + self.origins
        return values

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was learned, as plain values and tensors."""
        levels = {name: asdict(levels) for name, levels in self.levels.items()}
        learned = {"medians": self.medians, "gaps": self.gaps, "origins": self.origins, "units": self.units}
        words = {}
        for number, (name, encoder) in enumerate(self.texts.items()):
            words[name] = encoder.words
            learned |= {f"weights {number}": encoder.weights, f"directions {number}": encoder.directions}
        plain = {"kinds": self.kinds, "levels": levels, "parts": self.parts, "tokens": self.tokens, "words": words}
        plain |= {"edge_kinds": self.edge_kinds, "wide": self.wide, "wide_column": self.wide_column}
        plain["relations"] = self.relations and asdict(self.relations)
        return plain, {name: torch.from_numpy(values) for name, values in learned.items()}

    @classmethod
    def from_state(cls, plain: dict[str, Any], tensors: dict[str, Tensor]) -> ColumnEncoder:
        """The encoder whose :meth:`state` this is."""
        if not all(is_used(kind) for kind in plain["kinds"].values()):
            raise ValueError("it has a column of an unknown kind")
        learned: dict[str, Any] = {name: tensors[name].numpy() for name in ("medians", "gaps", "origins", "units")}
        levels = {name: Levels(**parts) for name, parts in plain["levels"].items()}
        texts = {
            name: TextEncoder(tensors[f"weights {number}"].numpy(), tensors[f"directions {number}"].numpy(), words)
            for number, (name, words) in enumerate(plain["words"].items())
        }
        same = ("kinds", "parts", "tokens", "edge_kinds", "wide", "wide_column")
        relations = plain["relations"] and Relations(**plain["relations"])
        return cls(levels=levels, texts=texts, relations=relations, **learned, **{name: plain[name] for name in same})

    @property
    def _numeric(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if is_number(kind)]

    @property
    def _features(self) -> list[tuple[str, str]]:
        """The column and the name of each feature (d), in the order of :meth:`transform`."""
        marks = [(name, f"{name} (missing)") for name, gap in zip(self._numeric, self.gaps, strict=True) if gap]
        levels = [(column, name) for column, levels in self.levels.items() for name in levels.names(column)]
        tokens = [(column, f"{column}: {token}") for column, kept in self.tokens.items() for token in kept]
        parts = [(column, f"{part} of {column}") for column, parts in self.parts.items() for part in parts]
        topics = [
            (column, f"{column} like {words!r}") for column, e in self.texts.items() for words in _unlike(e.words)
        ]
        wide = [(self.wide_column, f"{self.wide_column}: {name}") for name in self.wide]
        return [(name, name) for name in self._numeric] + marks + levels + tokens + parts + topics + wide

    def _numbers(self, columns: Columns) -> NDArray[np.float32]:
        """The features of the columns that are no categories, and after them the marks of missing values (n × d')."""
        values = columns.matrix({name: self.kinds[name] for name in self._numeric})
        missing = np.isnan(values)
        values = np.where(missing, self.medians, values)
        with np.errstate(over="ignore"):
            values = (values - self.origins) / self.units
        beyond = np.argwhere(np.abs(values) > LARGEST_FLOAT)
        if len(beyond):
            row, column = beyond[0].tolist()
            name = self._numeric[column]
            place = columns.table.place_in_row(row, name)
            problem = f"{place} is far beyond the values of the training rows: correct or clip it"
            raise ColumnError(problem, "drop", name)
        return np.hstack([values, missing[:, self.gaps]]).astype(np.float32)

    def _calendar(self, columns: Columns) -> Iterator[NDArray[np.float32]]:
        """The further features of each date (n × k); a missing date is the median."""
        for name, parts in self.parts.items():
            days = columns.numbers(name, self.kinds[name])
            stamps = _stamps(np.where(np.isnan(days), self.medians[self._numeric.index(name)], days))
            values = np.stack([CALENDAR[part](stamps) for part in parts], axis=1).astype(np.float32)
            if self.wide_column:
                values = (values - np.array([_USUAL[part][0] for part in parts])) / [_USUAL[part][1] for part in parts]
            yield values.astype(np.float32)

    def _multi_hot(self, columns: Columns) -> Iterator[sp.csr_array]:
        """The features of each list (n × k): a 1 for each token that has a feature."""
        for name, kept in self.tokens.items():
            place = {token: number for number, token in enumerate(kept)}
            codes, distinct = columns.levels(name)
            separator = self.kinds[name].partition(" ")[2]
            found = [{place[t] for t in tokens_of(text, separator) if t in place} for text in distinct.to_pylist()]
            lengths = np.array([*map(len, found), 0])
            cells = np.concatenate(
                [np.sort(np.array(list(row), dtype=np.int64)) for row in found] or [np.empty(0, int)]
            )
            ends = np.append(0, lengths.cumsum())
            each = sp.csr_array((np.ones(len(cells), np.float32), cells, ends), shape=(len(lengths), len(kept)))
            yield each[np.where(codes < 0, len(found), codes)]

    def _one_hot(self, columns: Columns) -> sp.csr_array:
        """The features of the categories (n × d'): a 1 for each category that has a feature for the row's level."""
        first, cells = 0, np.empty((len(columns), len(self.levels)), dtype=np.int64)
        for place, (name, levels) in enumerate(self.levels.items()):
            found = levels.features(*columns.levels(name))
            cells[:, place] = np.where(found < 0, -1, found + first)
            first += len(levels)
        there = cells >= 0
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return sp.csr_array((np.ones(ends[-1], dtype=np.float32), cells[there], ends), shape=(len(columns), first))


def _unlike(names: Sequence[str]) -> list[str]:
    """The names, of equal ones the later numbered."""
    seen = Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return numbered


def _stamps(days: Floats) -> NDArray[np.datetime64]:
    """Points in time from days since 1970; NaT for NaN."""
    microseconds = np.where(np.isnan(days), 0, days * 86_400e6).round().astype(np.int64)
    stamps: NDArray[np.datetime64] = microseconds.astype("M8[us]")
    stamps[np.isnan(days)] = np.datetime64("NaT")
    return stamps


def _medians(x: NDArray[Any]) -> Floats:
    """The median of the known values of each column (d) of a matrix (n × d), 0 if there is none."""
    medians = np.zeros(x.shape[1])
    known = ~np.isnan(x).all(axis=0)
    medians[known] = 2 * np.nanmedian(0.5 * x[:, known].astype(np.float64), axis=0)  # a sum of two must not overflow
    return medians


def _scales(x: Floats, medians: Floats) -> tuple[Floats, Floats]:
    """The origin and the unit of each column (d each) of a matrix (n × d): 0 and 1 where float32 holds it as it is."""
    low, high = np.fmin.reduce(x, axis=0, initial=np.nan), np.fmax.reduce(x, axis=0, initial=np.nan)
    is_other = ~(fit_float32(low, high) | np.isnan(low))
    with np.errstate(over="ignore", invalid="ignore"):
        largest, spread = np.maximum(np.abs(low), np.abs(high)), high - low
    is_usual = (spread == 0) | ((spread >= SMALLEST_SPREAD) & (spread <= LARGEST_VALUE))
    unit = np.where(np.isfinite(spread), spread, largest)
    return np.where(is_other, medians, 0.0), np.where(is_other & ~is_usual, unit, 1.0)


def _moments(x: Floats) -> tuple[Floats, Floats]:
    """The mean and the standard deviation of the columns (d each) of a matrix (n × d): 0 and 1 if there is no other.

    Quantities beside features that are mostly 0 are standardised here, as methods leave such a matrix as it is.
    """
    known = np.where(np.isnan(x).all(axis=0), 0.0, x)
    spread = np.nanstd(known, axis=0)
    return np.nanmean(known, axis=0), np.where(spread > 0, spread, 1.0)


def encode_columns(data: Data, train_mask: Tensor) -> Data:
    """The graph with its columns encoded as these training rows (n, boolean) teach it, in ``x``.

    ``encoder`` is what was learned, and ``feature_names`` names the features. If all columns are complete numbers, they
    stay as they are, and the encoder is for a table with missing values that is read later. A graph that is not from
    a table is returned as it is.
    """
    rows = train_mask.numpy()
    if data.get("columns") is not None:
        return with_encoder(data, ColumnEncoder.fit(data.columns, rows))
    if data.get("table") is None:
        return data
    data = copy.copy(data)
    data.encoder = ColumnEncoder.for_numbers(data.feature_names, data.x.numpy()[rows])
    return data


def with_encoder(data: Data, encoder: ColumnEncoder) -> Data:
    """The graph with its ``columns`` encoded by an encoder that is fitted already."""
    data = copy.copy(data)
    data.update(encoder.attributes(data.columns))
    return data
