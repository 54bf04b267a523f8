"""A small graph in several forms, and columns of any kind."""

import math
from datetime import timedelta

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from gcnsl.graph import Columns
from gcnsl.graph.tables import Table

X = np.arange(8.0).reshape(4, 2)
EDGES = [[0, 1, 1, 3], [1, 0, 2, 3]]
Y = [0, 1, 1, -1]

GOOD_NODES = "id,f,label\n1,0,a\n2,1,b\n"
GOOD_EDGES = "source,target\n1,2\n"

# 0 and 1 are twins (neighbours 2 and 3, class a); 4 hangs on 3; 5 has only a loop; 6 is unlabelled and alone.
TWIN_X = np.array([[1, 0], [1, 0], [0, 0], [2, 1], [0, 3], [-0.0, 0], [5, 5]])
TWIN_EDGES = [[0, 0, 1, 1, 3, 5, 0], [2, 3, 2, 3, 4, 5, 2]]
TWIN_Y = ["a", "a", "b", "b", "b", "b", None]


def column_of(values, kind: str = "auto") -> Columns:
    """One column ``c``, with the kind that it has or that it is said to have."""
    table = Table(pa.table({"c": values}), "nodes.csv")
    return Columns.read(table, ["c"]) if kind == "auto" else Columns.for_kinds(table, {"c": kind})


_any_text = st.text(st.characters(codec="utf-8"), max_size=3)
_cells = st.sampled_from(
    [
        st.integers(-(10**6), 10**6).map(lambda k: k / 64) | st.just(math.nan),
        st.integers(-(10**12), 10**12),
        st.integers(0, 3),
        st.booleans(),
        _any_text,
        st.sampled_from(["oslo", "rome", "7", "007", "NA"]),
        st.dates(),
        st.datetimes(),
        st.times(),
        st.timedeltas(timedelta(-(10**5)), timedelta(10**5)),
        st.none(),
    ]
)


@st.composite
def any_columns(draw) -> Columns:
    """Columns of any types and names, with values missing here and there."""
    rows = draw(st.integers(1, 12))
    names = draw(st.lists(_any_text, min_size=1, max_size=4, unique=True))
    cells = [draw(_cells) for _ in names]
    values = [draw(st.lists(cell | st.none(), min_size=rows, max_size=rows)) for cell in cells]
    return Columns.read(Table(pa.table(values, names=names), "nodes.csv"), names)
