import pytest
import torch

import gcnsl
from gcnsl import InputError
from gcnsl.datasets.benchmarks import fetch
from gcnsl.datasets.neighbourhoods import FILE_NAMES, TELLING, structural_neighbourhood
from gcnsl.graph import GraphWarning


@pytest.fixture(autouse=True)
def nothing_elsewhere(monkeypatch):
    """Files come from the folder that is given, or not at all."""
    monkeypatch.delenv("GCNSL_DATA", raising=False)
    monkeypatch.setattr("gcnsl.datasets.benchmarks._download", pytest.fail)


def published(name, edge_index, num_nodes, root, embedding="isomap"):
    return structural_neighbourhood(
        edge_index, num_nodes, embedding=embedding, source="published", benchmark=name, root=root
    )


def test_published(data_root) -> None:
    graph = gcnsl.load("cora", split=None, root=data_root)
    found = published("cora", graph.edge_index, graph.num_nodes, data_root)
    assert found.how == "isomap, published (outf_nodes_space_relation_cora_MDS.txt)"
    assert torch.bincount(found.division, minlength=8)[:4].tolist() == [2672, 2606, 2606, 2672]
    assert int((found.division >= 4).sum()) == 9681
    with pytest.raises(InputError, match=r"edges of outf_nodes_.*_cora_MDS\.txt are not those of the graph"):
        published("cora", graph.edge_index[:, 1:], graph.num_nodes, data_root)
    for name in ("squirrel", None):
        with pytest.raises(
            InputError, match=r"source\('published'\) .* no published neighbourhood of .*; use 'computed'"
        ):
            published(name, graph.edge_index, graph.num_nodes, data_root)


def test_published_pairs_point_to_the_node_that_takes_the_other_in(data_root) -> None:
    graph = gcnsl.load("texas", split=None, root=data_root)
    found = published("texas", graph.edge_index, graph.num_nodes, data_root, embedding="poincare")
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
    with pytest.warns(GraphWarning, match="reveal the classes of the nodes"):
        found = published("citeseer", graph.edge_index, graph.num_nodes, data_root)
    assert found.how.endswith("citeseer_MDS.txt), whose directions reveal classes")
    same = graph.y[found.edge_index[0]] == graph.y[found.edge_index[1]]
    assert same[found.division == 2].float().mean() > 0.95
    assert same[found.division == 3].float().mean() < 0.25
