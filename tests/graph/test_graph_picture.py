import pytest
import torch

from gcnsl import from_arrays
from gcnsl.graph import summarize
from gcnsl.graph.graph_picture import class_compatibility, draw_graph

from .cases import TWIN_EDGES as EDGES
from .cases import TWIN_X as X
from .cases import TWIN_Y as Y


def test_class_compatibility() -> None:
    data = from_arrays(X, EDGES, Y)
    shares = class_compatibility(data.edge_index, data.y, 2)
    # class a: its four edge ends all reach b; class b: four reach a, two lie on 3-4, one is the loop
    assert torch.allclose(shares, torch.tensor([[0, 1], [4 / 7, 3 / 7]], dtype=torch.double))


@pytest.mark.parametrize("labels", [Y, None, ["$x_$" if label else "$" for label in Y]])
def test_picture_is_written(labels, tmp_path) -> None:
    data = from_arrays(X, EDGES, labels)
    path = draw_graph(data, summarize(data), tmp_path / "new" / "picture.png")
    assert path.read_bytes().startswith(b"\x89PNG")
