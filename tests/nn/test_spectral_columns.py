import torch

from gcnsl.graph import from_arrays
from gcnsl.nn.spectral_columns import SpectralColumns
from gcnsl.spectral import SpectralFeatures

from .cases import small_graph


def test_known_nodes_keep_their_features_and_new_ones_get_theirs() -> None:
    graph = small_graph()
    transformer = SpectralFeatures("esc", n_components=3)
    columns = SpectralColumns(transformer.fit_transform(graph.x), transformer)
    assert columns.grown(graph) is columns
    grown = columns.grown(from_arrays(torch.cat([graph.x, graph.x[:2]]), graph.edge_index))
    assert grown.values[: graph.num_nodes].equal(columns.values)
    torch.testing.assert_close(grown.values[graph.num_nodes :], columns.values[:2])
    assert columns.state()[1]["values"].equal(columns.values)
