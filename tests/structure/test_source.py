import copy

import numpy as np
import pytest
import torch

import gcnsl
from gcnsl import InputError, synthetic
from gcnsl.datasets.files import fetch
from gcnsl.graph import GraphWarning
from gcnsl.structure import embeddings, source, structural_neighbourhood
from gcnsl.structure.published import FILE_NAMES, TELLING


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr("gcnsl.datasets.files.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "structure"


@pytest.fixture
def data():
    return synthetic(n=50, h=0.5, classes=2, degree=3, features=8, seed=0)


def same(one, other) -> bool:
    return one.edge_index.equal(other.edge_index) and one.division.equal(other.division) and one.how == other.how


@pytest.mark.parametrize("embedding", ["isomap", "poincare", "struc2vec"])
def test_holds_the_graph_and_as_many_latent_neighbours(data, embedding) -> None:
    if embedding != "isomap":
        pytest.importorskip("gensim")
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[7], [7]])], dim=1)
    found = structural_neighbourhood(data, embedding=embedding)
    graph = found.edge_index[:, found.division < 4]
    assert sorted(graph.T.tolist()) == sorted(data.edge_index[:, :-1].T.tolist())
    latent = found.edge_index[:, found.division >= 4]
    assert 0 < latent.shape[1] <= graph.shape[1]
    assert (latent[0] != latent[1]).all()
    assert found.how == f"{embedding}, computed"


def test_is_computed_once(data, cache, monkeypatch) -> None:
    first = structural_neighbourhood(data)
    monkeypatch.setattr(source, "embed", None)
    assert same(structural_neighbourhood(data), first)
    assert len(list(cache.iterdir())) == 1
    other = copy.copy(data)
    other.edge_index = data.edge_index[:, :0]
    with pytest.raises(TypeError, match="not callable"):
        structural_neighbourhood(other)


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda _: b"", lambda _: b"PK"])
def test_a_damaged_file_is_written_again(data, cache, damage) -> None:
    first = structural_neighbourhood(data)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert same(structural_neighbourhood(data), first)
    with np.load(file, allow_pickle=False) as kept:
        assert kept["pairs"].shape == first.edge_index.shape


def test_a_cache_that_cannot_be_is_done_without(data, cache) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    assert structural_neighbourhood(data).how == "isomap, computed"


@pytest.mark.parametrize(
    ("embedding", "limit", "how"),
    [
        ("isomap", "EXACT_NODES", "isomap with 500 of them as landmarks, computed"),
        ("poincare", "EXACT_EDGES", "poincare with 100000 of them, drawn, computed"),
        ("struc2vec", "FULL_NODES", "struc2vec with surroundings of 2 steps, not 5, computed"),
    ],
)
def test_large_graphs_get_less_and_are_told(data, monkeypatch, embedding, limit, how) -> None:
    if embedding != "isomap":
        pytest.importorskip("gensim")
    monkeypatch.setattr(embeddings, limit, 20)
    with pytest.warns(GraphWarning, match=f"are too many for {embedding} in full: it uses"):
        assert structural_neighbourhood(data, embedding=embedding).how == how
    assert structural_neighbourhood(data, embedding=embedding).how == how  # from the cache, without a warning


def test_unknown_graphs_are_not_published(data) -> None:
    with pytest.raises(InputError, match=r"no published neighbourhood of 'synthetic.*; use 'computed'"):
        structural_neighbourhood(data, source="published")


def test_published(data_root) -> None:
    graph = gcnsl.load("cora", split=None, root=data_root)
    found = structural_neighbourhood(graph, source="published")
    assert found.how == "isomap, published (outf_nodes_space_relation_cora_MDS.txt)"
    assert torch.bincount(found.division, minlength=8)[:4].tolist() == [2672, 2606, 2606, 2672]
    assert int((found.division >= 4).sum()) == 9681
    graph.edge_index = graph.edge_index[:, 1:]
    with pytest.raises(InputError, match=r"the graph is not the one of outf_nodes_space_relation_cora_MDS\.txt"):
        structural_neighbourhood(graph, source="published")


def test_published_pairs_point_to_the_node_that_takes_the_other_in(data_root) -> None:
    graph = gcnsl.load("texas", split=None, root=data_root)
    found = structural_neighbourhood(graph, embedding="poincare", source="published")
    path = "geom-gcn/structural_neighborhood/outf_nodes_space_relation_texas_poincare.txt"
    line = next(line for line in fetch([path], data_root)[path].decode().split("\n") if "latent_space" in line)
    pair, _, relation = line.split("\t")
    neighbour, node = (int(end) for end in pair.split(","))
    place = ((found.edge_index == torch.tensor([[node], [neighbour]])).all(dim=0) & (found.division >= 4)).nonzero()
    assert found.division[place.item()] == 4 + int(relation)


def test_files_that_tell_classes_are_those_without_directions(data_root) -> None:
    undirected = set()
    for stem in ("cora", "citeseer", "pubmed", "chameleon", "cornell", "texas", "wisconsin", "film"):
        for embedding, file in FILE_NAMES.items():
            path = f"geom-gcn/structural_neighborhood/outf_nodes_space_relation_{stem}_{file}.txt"
            lines = fetch([path], data_root)[path].decode().split("\n")[1:]
            edges = [line.split("\t") for line in lines if "\tgraph\t" in line]
            relation = {tuple(pair.split(",")): int(towards) for pair, _, towards in edges}
            if any(relation[v, u] != 3 - towards for (u, v), towards in relation.items()):
                undirected.add((stem, embedding))
    assert undirected == TELLING


def test_a_file_that_tells_classes_comes_with_a_warning(data_root) -> None:
    graph = gcnsl.load("citeseer", split=None, root=data_root)
    with pytest.warns(GraphWarning, match="follow the classes of the nodes"):
        found = structural_neighbourhood(graph, source="published")
    assert found.how.endswith("citeseer_MDS.txt), whose directions tell classes")
    same = graph.y[found.edge_index[0]] == graph.y[found.edge_index[1]]
    assert same[found.division == 2].float().mean() > 0.95
    assert same[found.division == 3].float().mean() < 0.25


@pytest.mark.parametrize(("name", "message"), [("squirrel", "no published"), ("cornell", "the graph is not the one")])
def test_graphs_that_have_none(data_root, name, message) -> None:
    with pytest.raises(InputError, match=message):
        structural_neighbourhood(gcnsl.load(name, split=None, root=data_root), source="published")
