import pytest

from gcnsl import from_arrays
from gcnsl.graph import summarize
from gcnsl.graph.summary import draw_graph

from .cases import TWIN_EDGES as EDGES
from .cases import TWIN_X as X
from .cases import TWIN_Y as Y


@pytest.mark.parametrize("labels", [Y, None, ["$x_$" if label else "$" for label in Y]])
def test_picture_is_written(labels, tmp_path) -> None:
    data = from_arrays(X, EDGES, labels)
    path = draw_graph(data, summarize(data), tmp_path / "new" / "picture.png")
    assert path.read_bytes().startswith(b"\x89PNG")
