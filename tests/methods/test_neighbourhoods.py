import pytest

from gcnsl import InputError, load
from gcnsl.nn import GeomGCNConfig
from gcnsl.structure import structural_neighbourhood

from .cases import small_graph


@pytest.mark.parametrize("embedding", ["isomap", "struc2vec"])
def test_they_are_computed_as_the_configuration_says(embedding) -> None:
    data = small_graph()
    found = GeomGCNConfig(embedding=embedding).precompute(data, seed=0)
    expected = structural_neighbourhood(data.edge_index, 30, embedding=embedding)
    assert found.edge_index.equal(expected.edge_index)
    assert found.division.equal(expected.division)


def test_a_graph_of_ones_own_has_no_published_ones() -> None:
    data = small_graph()
    data.name = "cora"  # a file may have any name
    with pytest.raises(InputError, match=r"source\('published'\) .*use 'computed'"):
        GeomGCNConfig(source="published").precompute(data, seed=0)


def test_those_of_a_benchmark_are_read(data_root) -> None:
    data = load("texas", root=data_root)
    found = GeomGCNConfig(source="published", embedding="poincare").precompute(data, seed=0, root=data_root)
    assert "published" in found.how
    assert int(found.edge_index.max()) < data.num_nodes
