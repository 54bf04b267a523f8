import pytest

from gcnsl.graph import GraphWarning
from gcnsl.structure import source, structural_neighbourhood

from .cases import edges


@pytest.mark.parametrize(
    ("embedding", "limit", "how"),
    [
        ("isomap", "EXACT_NODES", "isomap with 500 of them as landmarks, computed"),
        ("poincare", "EXACT_EDGES", "poincare with 100000 of them, drawn at random, computed"),
        ("struc2vec", "FULL_NODES", "struc2vec with distances up to 2, not 5, computed"),
    ],
)
def test_large_graphs_get_less_and_are_told(monkeypatch, embedding, limit, how) -> None:
    if embedding != "isomap":
        pytest.importorskip("gensim")
    monkeypatch.setattr(source, limit, 20)
    with pytest.warns(GraphWarning, match=f"are too many for the exact {embedding} embedding: using"):
        assert structural_neighbourhood(edges(), 50, embedding=embedding).how == how
    assert structural_neighbourhood(edges(), 50, embedding=embedding).how == how  # from the cache, without a warning
