import pytest
import torch

from gcnsl import InputError
from gcnsl.graph.arrays import as_array


@pytest.mark.parametrize("values", [[1.0, 2.0], (1.0, 2.0), torch.tensor([1.0, 2.0], requires_grad=True)])
def test_anything_array_like_becomes_an_array(values) -> None:
    assert as_array(values, "x").tolist() == [1, 2]


def test_anything_else_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="edge_index is not an array"):
        as_array([[1], [2, 3]], "edge_index")
