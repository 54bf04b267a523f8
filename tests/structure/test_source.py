import pytest
import torch

from gcnsl import InputError
from gcnsl.structure import structural_neighbourhood

from .cases import edges


@pytest.mark.parametrize("embedding", ["isomap", "poincare", "struc2vec"])
def test_holds_the_graph_and_as_many_latent_neighbours(embedding) -> None:
    if embedding != "isomap":
        pytest.importorskip("gensim")
    given = edges()
    found = structural_neighbourhood(torch.cat([given, torch.tensor([[7], [7]])], dim=1), 50, embedding=embedding)
    graph = found.edge_index[:, found.division < 4]
    assert sorted(graph.T.tolist()) == sorted(given.T.tolist())
    latent = found.edge_index[:, found.division >= 4]
    assert 0 < latent.shape[1] <= graph.shape[1]
    assert (latent[0] != latent[1]).all()
    assert found.how == f"{embedding}, computed"


@pytest.mark.parametrize(
    ("benchmark", "message"),
    [
        (
            None,
            r"source\('published'\) .* only graphs of the literature have published neighbourhoods; use 'comp",
        ),
        ("texas2", "no published neighbourhood of 'texas2'; use 'computed'"),
    ],
)
def test_unknown_graphs_are_not_published(benchmark, message) -> None:
    with pytest.raises(InputError, match=message):
        structural_neighbourhood(edges(), 50, source="published", benchmark=benchmark)


def test_bad_choices_are_named() -> None:
    with pytest.raises(InputError, match=r"embedding\('pca'\) must be one of isomap, poincare, struc2vec"):
        structural_neighbourhood(edges(), 50, embedding="pca")
    with pytest.raises(InputError, match=r"source\('web'\) must be one of computed, published"):
        structural_neighbourhood(edges(), 50, source="web")
