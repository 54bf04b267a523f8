import numpy as np
import pytest
import torch

from gcnsl.structure import source, structural_neighbourhood

from .cases import edges, same


def test_is_computed_once(cache, monkeypatch) -> None:
    first = structural_neighbourhood(edges(), 50)
    monkeypatch.setattr(source, "embed", None)
    assert same(structural_neighbourhood(edges(), 50), first)
    assert len(list(cache.iterdir())) == 1
    with pytest.raises(TypeError, match="not callable"):
        structural_neighbourhood(edges()[:, :0], 50)


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda _: b"", lambda _: b"PK"])
def test_a_damaged_file_is_written_again(cache, damage) -> None:
    first = structural_neighbourhood(edges(), 50)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert same(structural_neighbourhood(edges(), 50), first)
    with np.load(file, allow_pickle=False) as kept:
        assert kept["pairs"].shape == first.edge_index.shape


def test_a_cache_that_cannot_be_is_done_without(cache) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    assert structural_neighbourhood(edges(), 50).how == "isomap, computed"


def test_the_order_of_edges_and_loops_are_no_other_graph(cache) -> None:
    first = structural_neighbourhood(edges(), 50)
    loop = torch.tensor([[7], [7]])
    assert same(structural_neighbourhood(torch.cat([loop, edges().flip(1)], dim=1), 50), first)
    assert len(list(cache.iterdir())) == 1


def test_a_file_with_other_content_is_written_again(cache) -> None:
    first = structural_neighbourhood(edges(), 50)
    (file,) = cache.iterdir()
    np.savez(file, pairs=first.edge_index.numpy(), division=first.division.numpy() + 8, how=np.array(first.how))
    assert same(structural_neighbourhood(edges(), 50), first)
