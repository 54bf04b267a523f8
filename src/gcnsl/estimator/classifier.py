"""GCNSLClassifier: fit, predict, save."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import Self

from gcnsl.errors import InputError
from gcnsl.estimator import saving
from gcnsl.estimator.graph import TrainingGraph
from gcnsl.estimator.labels import draw_validation, encode, read_labels
from gcnsl.estimator.nodes import NodeClassifier
from gcnsl.graph import UNLABELLED, from_arrays
from gcnsl.graph.checks import check_masks
from gcnsl.nn import GCNSLConfig
from gcnsl.nn.gcn_sl import Merge, SpectralMethod, SpectralScale
from gcnsl.nn.preprocessing import AdjacencyNorm, FeatureNorm
from gcnsl.training import Checkpoint, Epoch, TrainingSettings, choose_device, predict_logits, seeded, train
from gcnsl.training.checkpoint import digest


class GCNSLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify the nodes of a graph with GCN-SL, from the labels of some of them.

    Learning is semi-supervised: :meth:`fit` sees the features and edges of all nodes and the labels of those that have
    one, and :meth:`predict` without arguments tells the classes of all. With arguments it takes the graph as it has
    grown since. scikit-learn's conventions hold; for its cross-validation see :meth:`over_nodes`.

    Args:
        hidden_channels, similarity_channels, rounds, epsilon, merge, dropout, use_adjacency, use_reconnected: Of the
            model, see :class:`gcnsl.nn.GCNSL`; the paper's p, q, K, ε.
        n_components, n_anchors, spectral_method, spectral_scale: Of the spectral features, see
            :class:`gcnsl.nn.GCNSLConfig`; the paper's c, m.
        feature_norm, feature_shift, self_loops, adjacency_norm: Of the preparation of the graph, see there.
        lr, weight_decay, epochs, patience: Of training, see :class:`gcnsl.training.TrainingSettings`.
        validation_fraction: Share of the labelled nodes that decide when to stop, where ``fit`` is given none.
        random_state: Seed of everything that is drawn: validation nodes, anchors, shifted feature, weights, dropout.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        checkpoint: File to save an unfinished run in, and to go on from; ``None`` for none.
        checkpoint_every: Epochs between two writes of it.
        on_epoch: Called with a :class:`gcnsl.training.Epoch` after each.

    Attributes:
        classes_: The classes, sorted, of the type the labels had.
        n_features_in_: Features of a node.
        history_: Losses and accuracies of every epoch, a :class:`gcnsl.training.History`.
        model_: The trained :class:`gcnsl.nn.GCNSL`.
        graph_: The training graph.
        y_: Class numbers of its nodes, -1 for unlabelled ones (n).
        train_mask_, val_mask_: Which of them were learnt from, and which decided when to stop (n).
        node_ids_: The caller's names for the nodes, if they were given, else ``None``.
    """

    def __init__(
        self,
        *,
        hidden_channels: int = GCNSLConfig.hidden_channels,
        similarity_channels: int = GCNSLConfig.similarity_channels,
        rounds: int = GCNSLConfig.rounds,
        epsilon: float = GCNSLConfig.epsilon,
        merge: Merge = GCNSLConfig.merge,
        dropout: float = GCNSLConfig.dropout,
        use_adjacency: bool = GCNSLConfig.use_adjacency,
        use_reconnected: bool = GCNSLConfig.use_reconnected,
        n_components: int = GCNSLConfig.n_components,
        n_anchors: int = GCNSLConfig.n_anchors,
        spectral_method: SpectralMethod = GCNSLConfig.spectral_method,
        spectral_scale: SpectralScale = GCNSLConfig.spectral_scale,
        feature_norm: FeatureNorm = GCNSLConfig.feature_norm,
        feature_shift: float = GCNSLConfig.feature_shift,
        self_loops: bool = GCNSLConfig.self_loops,
        adjacency_norm: AdjacencyNorm = GCNSLConfig.adjacency_norm,
        lr: float = 0.02,
        weight_decay: float = TrainingSettings.weight_decay,
        epochs: int = TrainingSettings.epochs,
        patience: int = TrainingSettings.patience,
        validation_fraction: float = 0.4,
        random_state: Any = 0,
        device: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = Checkpoint.every,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        self.hidden_channels = hidden_channels
        self.similarity_channels = similarity_channels
        self.rounds = rounds
        self.epsilon = epsilon
        self.merge = merge
        self.dropout = dropout
        self.use_adjacency = use_adjacency
        self.use_reconnected = use_reconnected
        self.n_components = n_components
        self.n_anchors = n_anchors
        self.spectral_method = spectral_method
        self.spectral_scale = spectral_scale
        self.feature_norm = feature_norm
        self.feature_shift = feature_shift
        self.self_loops = self_loops
        self.adjacency_norm = adjacency_norm
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.on_epoch = on_epoch

    def fit(self, X: Any, y: Any, *, edge_index: Any, val_mask: Any = None, node_ids: Any = None) -> Self:
        """Train on a graph.

        Args:
            X: Features (n × d), dense or sparse, NumPy, SciPy or torch.
            y: One label a node, of any type; -1, ``None`` or NaN where it is not known.
            edge_index: Node numbers (2 × E), in any direction and with any repeats.
            val_mask: Which labelled nodes decide when to stop (n, boolean); ``None`` draws ``validation_fraction`` of
                each class. The other labelled nodes are learnt from.
            node_ids: The caller's names for the nodes (n), integers or texts, to be kept with the model.

        Raises:
            InputError: If anything can't be used, naming argument, place and remedy.
        """
        config, settings = self._values_of(GCNSLConfig), self._values_of(TrainingSettings)
        seed = _seed(self.random_state)
        device = choose_device(self.device)
        numbers, classes = encode(y)
        if val_mask is None:
            val_mask = draw_validation(numbers, self.validation_fraction, seed=seed)
        names = [str(c) for c in classes]
        data = from_arrays(X, edge_index, numbers, class_names=names, node_ids=node_ids, val_mask=val_mask)
        train_mask, val_mask = _masks(data)

        with seeded(seed):
            model = config.build(data).to(device)
        graph = TrainingGraph.of(config, data, seed=seed)
        history = train(
            model,
            graph.inputs,
            data.y,
            train_mask=train_mask,
            val_mask=val_mask,
            settings=settings,
            seed=seed,
            on_epoch=self.on_epoch,
            checkpoint=self._checkpoint(config, data),
        )
        self.classes_, self.n_features_in_ = classes, data.num_features
        self.history_, self.model_, self.graph_ = history, model, graph
        self.y_, self.train_mask_, self.val_mask_ = (part.numpy() for part in (data.y, train_mask, val_mask))
        self.node_ids_ = data.get("node_ids")
        return self

    def predict(self, X: Any = None, *, edge_index: Any = None) -> NDArray[Any]:
        """The classes of all nodes (n), of the training graph or, with arguments, of the graph as it has grown.

        Args:
            X: Features of the training nodes, as they were and in their order, and after them of the new ones.
            edge_index: The edges of the whole graph.

        A new node's spectral features come by extension; A* connects it to training nodes, and to itself. Where no node
        is new, predictions are those without arguments, bit for bit.
        """
        numbers = self._logits(X, edge_index).argmax(dim=1).numpy()
        labels: NDArray[Any] = self.classes_[numbers]
        return labels

    def predict_proba(self, X: Any = None, *, edge_index: Any = None) -> NDArray[Any]:
        """Probabilities of the classes for all nodes (n × C); arguments as in :meth:`predict`."""
        return self._logits(X, edge_index).softmax(dim=1).numpy()

    def score(self, X: Any, y: Any, *, edge_index: Any = None, nodes: Any = None) -> float:
        """Share of nodes whose class is predicted rightly.

        Args:
            X: ``None`` for the training graph, else as in :meth:`predict`, with ``edge_index``.
            y: One label a node; those without one are left out.
            nodes: Count only these: a mask (n) or node numbers. Nodes held back from training, say.
        """
        truth, labelled = read_labels(y)
        predicted = self.predict(X, edge_index=edge_index)
        if len(truth) != len(predicted):
            raise InputError(f"y has {len(truth)} entries: give one label for each of the {len(predicted)} nodes")
        counted = labelled if nodes is None else labelled & _chosen(nodes, len(truth))
        if not counted.any():
            raise InputError("y has no label among the nodes to be counted: give labels, or other nodes")
        return float((predicted[counted] == truth[counted]).mean())

    def reconnected_graph_(self) -> Data:
        """The learned graph A* of the training nodes: ``edge_index`` (2 × E) and ``edge_weight``, the similarities."""
        check_is_fitted(self)
        device = next(self.model_.parameters()).device
        edge_index, weight = self.model_.reconnected_graph(self.graph_.inputs[0].to(device))
        return Data(edge_index=edge_index.cpu(), edge_weight=weight.cpu(), num_nodes=len(self.y_))

    def over_nodes(self, X: Any, edge_index: Any) -> NodeClassifier:
        """The same for scikit-learn's cross-validation and searches: an estimator whose samples are node numbers."""
        return NodeClassifier(self, X, edge_index)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the fitted classifier to a folder: ``config.json`` and ``tensors.safetensors``, nothing pickled.

        The training graph goes with it. An older model there is replaced, once the new one is complete.
        """
        check_is_fitted(self)
        saving.save(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read what :meth:`save` wrote; its predictions are the same, bit for bit.

        Raises:
            InputError: If the folder is no such model, or damaged in any way.
        """
        classifier = cls()
        saving.load(classifier, path, device=device)
        return classifier

    def _values_of(self, kind: Any) -> Any:
        """The parameters that are fields of a configuration, as one."""
        known = self.get_params(deep=False)
        return kind(**{field.name: known[field.name] for field in fields(kind) if field.name in known})

    def _checkpoint(self, config: GCNSLConfig, data: Data) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        graph = digest(saving.feature_tensors(data.x) | {"edge_index": data.edge_index})[:16]
        return Checkpoint(self.checkpoint, self.checkpoint_every, asdict(config) | {"graph": graph})

    def _logits(self, X: Any, edge_index: Any) -> Tensor:
        check_is_fitted(self)
        if (X is None) != (edge_index is None):
            raise InputError("give both X and edge_index, of the whole graph as it has grown, or none of them")
        if X is None:
            return predict_logits(self.model_, self.graph_.inputs).cpu()
        inputs = self.graph_.grown_inputs(X, edge_index)
        return predict_logits(self.model_, inputs, known=len(self.y_)).cpu()


def _seed(random_state: Any) -> int:
    """A seed from whatever scikit-learn takes for one."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InputError(f"random_state({random_state}) must be >= 0")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _chosen(nodes: Any, n: int) -> NDArray[np.bool_]:
    """A mask from a mask or from node numbers."""
    given = np.asarray(nodes)
    mask = given.dtype == bool and given.shape == (n,)
    if not mask and not (given.dtype.kind in "iu" and given.ndim == 1 and (given >= 0).all() and (given < n).all()):
        raise InputError(
            f"nodes has shape {given.shape} and dtype {given.dtype}: give a boolean for each of the {n} nodes, or "
            f"node numbers from 0 to {n - 1}"
        )
    chosen = np.zeros(n, dtype=bool)
    chosen[given] = True
    return chosen


def _masks(data: Data) -> tuple[Tensor, Tensor]:
    """Training and validation nodes (n each): the former are the labelled nodes that are not the latter."""
    if data.val_mask.shape[1] != 1:
        raise InputError(f"val_mask has {data.val_mask.shape[1]} columns: give one run's, val_mask[:, run]")
    val_mask: Tensor = data.val_mask[:, 0]
    train_mask = (data.y != UNLABELLED) & ~val_mask
    if not val_mask.any():
        raise InputError("val_mask selects no node: give it labelled nodes, or None to have some drawn")
    check_masks({"train_mask": train_mask}, data.y, len(data.y), data.class_names)
    return train_mask, val_mask
