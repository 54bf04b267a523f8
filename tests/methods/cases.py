"""Every method, small enough to train in a blink, and graphs to train it on."""

import copy

import torch
from torch_geometric.data import Data

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.graph import from_arrays, split_masks
from gcnsl.methods import METHODS, Fitted, Method, Prepared, fit, prepare
from gcnsl.training import TrainingSettings
from tests.nn.cases import drawn

CPU = torch.device("cpu")
SMALL = {
    "gcn-sl-cc": {"n_components": 3, "epsilon": 0.3},
    "gcn-sl-av": {"n_components": 3, "epsilon": 0.3},
    "gcn-sl-plus": {"similarity_channels": 3},
}
SMALL |= {"boosted-trees": {"leaf_nodes": 2, "trees": 30}}
NOT_FOR_ALL = {"dropout", "standardize", "hidden_channels"}
"""Options that are left out for methods without them."""
NETWORKS = [name for name, method in METHODS.items() if isinstance(method.training, TrainingSettings)]
"""Methods that are trained by gradient descent; the others are fitted in stages."""
VARIANTS = [
    ("mlp", {"num_layers": 1, "feature_norm": "none"}),
    ("gcn", {"num_layers": 3, "residual": True, "norm": "batch", "drop_features": False}),
    ("mixhop", {"self_loops": False, "num_layers": 3, "powers": (0, 3)}),
    ("nlgnn", {"embedding": "gcn", "kernel_size": 3}),
    ("sage", {"num_layers": 3, "norm": "layer", "direction": "in"}),
    ("linkx", {"link_layers": 2, "feature_layers": 3, "num_layers": 1, "direction": "undirected"}),
    ("dir-gcn", {"alpha": 0.0, "jump": "cat"}),
    ("acm-gcn", {"residual": True, "direction": "out"}),
    ("gcn-sl-cc", {"rounds": 1, "self_loops": True, "n_components": 0}),
    ("gcn-sl-av", {"spectral_method": "sc", "use_reconnected": False}),
    ("gcn-sl-plus", {"direction": "both", "features_heads": 2, "mean_degree": None, "epsilon": 0.3}),
    ("gcn-sl-plus", {"structure_branch": False, "rounds": 0, "normalize_branches": True}),
    ("logistic", {"hops": 0, "direction": "undirected"}),
    ("boosted-trees", {"components": 4}),
    ("twins", {"direction": "in"}),
]
EVERY = [(name, {}) for name in METHODS] + VARIANTS
"""Names and options for which the laws of all methods are tested."""


def method(name: str, options: dict, *, width: int = 4) -> Method:
    known = METHODS[name].options()
    wanted = {"hidden_channels": width} | SMALL.get(name, {}) | options
    missing = NOT_FOR_ALL - known.keys()
    return METHODS[name].with_options(**{key: value for key, value in wanted.items() if key not in missing})


def small_graph() -> Data:
    """30 nodes, 9 features, 3 classes; one node has no neighbour, no two have the same features or neighbours."""
    data = synthetic(n=30, h=0.4, classes=3, degree=4, features=9, seed=1)
    apart = (data.edge_index != 29).all(dim=0)
    x = data.x + torch.linspace(0, 1, 30)[:, None] * torch.linspace(1, 2, 9)
    return from_arrays(x, data.edge_index[:, apart], data.y)


def weighted_graph(*, scale: float = 1.0, reverse: bool = False) -> Data:
    """The same graph with directions, from smaller to larger numbers or the reverse, and weights."""
    data = small_graph()
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    weight = scale * torch.linspace(0.5, 4, once.shape[1])
    return from_arrays(data.x, once.flip(0) if reverse else once, data.y, directed=True, edge_weight=weight)


def easy_graph() -> Data:
    """120 nodes of 3 classes, which both features and edges tell apart."""
    return with_random_split(synthetic(n=120, h=0.9, classes=3, degree=6, features=24, seed=0, signal=0.7), runs=2)


def with_features(data: Data, x: torch.Tensor) -> Data:
    data = copy.copy(data)
    data.x = x
    return data


def prepared(name: str, options: dict, data: Data, *, seed: int = 0, width: int = 4) -> Prepared:
    return prepare(method(name, options, width=width), data, seed=seed, device=CPU)


def fitted(ready: Prepared, *, run: int = 0, seed: int = 0, **more) -> Fitted:
    masks = split_masks(ready.graph, run)
    return fit(ready, train_mask=masks["train"], val_mask=masks["val"], seed=seed, **more)


def renumbered_model(model: torch.nn.Module, order: torch.Tensor) -> torch.nn.Module:
    """The model with the weights that belong to single nodes in another order."""
    other, n = copy.deepcopy(model), len(order)
    for name, weight in other.named_parameters():
        if weight.dim() == 2 and weight.shape[1] % n == 0 and name != "lin_out.weight":
            weight.data = weight.data.view(len(weight), -1, n)[:, :, order].reshape(weight.shape)
    return other


def with_weights(ready: Prepared) -> torch.nn.Module:
    """A model in evaluation that has some weights: a network's are drawn, other models are fitted to all nodes."""
    if ready.method.name in NETWORKS:
        return drawn(ready.build())
    everyone = torch.ones(ready.graph.num_nodes, dtype=torch.bool)
    return fit(ready, train_mask=everyone, val_mask=everyone, seed=0).model


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(x.equal(y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
