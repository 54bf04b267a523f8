"""NodeClassifier: every method of the registry as a scikit-learn classifier."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Real
from textwrap import indent
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from typing_extensions import Self

from gcnsl.auto import AUTO, AutoSettings, Blend
from gcnsl.auto.journal import remove_journal
from gcnsl.checks import UNLABELLED, check_flag, check_generator, check_number, check_seed
from gcnsl.errors import InputError, Interrupted
from gcnsl.estimator import stored_classifier
from gcnsl.estimator.best_for_graph import fit_best
from gcnsl.estimator.deciding import Deciding
from gcnsl.estimator.given_graph import given_graph, in_training_order, num_rows
from gcnsl.estimator.over_nodes import ClassifierOverNodes, labelled_nodes
from gcnsl.estimator.progress import progress
from gcnsl.graph import (
    draw_validation,
    encode_columns,
    from_data,
    split_count,
    split_masks,
)
from gcnsl.graph.labels import class_array
from gcnsl.graph.masks import check_masks
from gcnsl.methods import METHODS, Fitted, Method, find_method, fit, prepare
from gcnsl.nn.config import Folder
from gcnsl.options import described_lines
from gcnsl.runs.executor import HERE, Executor
from gcnsl.runs.jobs import graph_digest
from gcnsl.training import Checkpoint, StageSettings, TrainingSettings, choose_device, measure
from gcnsl.training.decisions import check_rule
from gcnsl.version import __version__

if TYPE_CHECKING:
    from gcnsl.estimator.explanation import Explanation
    from gcnsl.estimator.importance import Importance


class NodeClassifier(Deciding, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify the nodes of a graph with any method, from the labels of some of them.

    Learning is semi-supervised: :meth:`fit` sees the features and edges of all nodes and the labels of those that have
    one, and :meth:`predict` without arguments returns the classes of all. With arguments it takes the graph as it has
    grown since. scikit-learn's conventions hold; for its cross-validation see :meth:`over_nodes`.

    Ctrl-C and SIGTERM during training raise :class:`gcnsl.errors.Interrupted`. The classifier is then fitted with the
    best epoch so far, unless the first one was not finished.

    >>> classifier = NodeClassifier("h2gcn-2", dropout=0.2).fit(X, y, edge_index=edges)    # doctest: +SKIP
    >>> classifier.predict()                                                              # doctest: +SKIP

    Args:
        method: ``"auto"`` for the best ensemble of many methods that is found within ``minutes``; or a name of
            :data:`gcnsl.methods.METHODS`, such as ``"gcn-sl"``, ``"h2gcn-2"`` or ``"mlp"``.
        validation_fraction: Share of the labelled nodes that decide when to stop, if ``fit`` is given none.
        random_state: Seed of everything that is drawn: validation nodes, anchors, weights, dropout.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        minutes: Time for training, preparation included: it ends with the last epoch that fits. One epoch is always
            made; ``None`` for as long as it takes, or with ``"auto"`` as long as its ``quality`` says.
        threshold: What the threshold of a class is chosen for, see :meth:`set_threshold`; ``None`` to predict the
            likeliest class, and ``"auto"`` for ``"f1"`` if at most 20 % of the labelled nodes are of the rarer of two
            classes, which would hardly ever be the likeliest, else ``None``.
        checkpoint: File (``"auto"``: folder) to save a run in, and to continue from; :meth:`save` removes it. ``None``
            for none.
        checkpoint_every: Number of epochs between two writes of it.
        verbose: Whether to show in a terminal or a notebook how training goes. The log ``gcnsl`` has it in any case.
        on_epoch: Called with a :class:`gcnsl.training.Epoch` after each epoch; with ``"auto"``, now and then with a
            :class:`gcnsl.auto.Progress`. It takes the place of what ``verbose`` shows.
        **options: Hyper-parameters of the method and of its training, listed below.

    Attributes:
        classes_: The classes, sorted, of the type that the labels had.
        n_features_in_: Number of features per node.
        fitted_, model_: The trained model with the graph as it reads it, a :class:`gcnsl.methods.Fitted`, and the
            ``torch.nn.Module`` in it; with ``"auto"`` a :class:`gcnsl.auto.Blend`, and its heaviest member's.
        history_: Losses and accuracies of every epoch, a :class:`gcnsl.training.History`.
        graph_: The training graph, a checked ``Data``.
        y_: Class numbers of its nodes, -1 for unlabelled ones (n).
        train_mask_, val_mask_, test_mask_: The nodes whose labels were learned from, those that only decided when to
            stop, and those that were held back from both (n). In an ensemble of several folds the first are all, as
            each is learned from in some of the folds.
        threshold_: A node whose class has at least this probability is predicted to be of it, whatever else is more
            likely, a :class:`gcnsl.training.decisions.Threshold`; ``None`` if the likeliest class is predicted.
        temperature_: What logits are divided by, so that probabilities can be believed: chosen on the validation nodes
            if it surely lowers their log loss, otherwise 1. The models of an ensemble have their own.
        node_ids_: The caller's names for the nodes, if they were given, else ``None``.
        encoder_: How the columns of a table become features, a :class:`gcnsl.graph.ColumnEncoder`; ``None`` if the
            graph is not from a table.
        leaderboard_: With ``"auto"`` all that was tried, a ``pandas.DataFrame``; the first row is what is kept.
            ``validation`` is the ``metric`` on the nodes of ``chosen_by_``, each predicted by a model that has not
            learned from it, NaN for those that have not completed all folds; ``first_fold`` is the same on the first
            fold, and ``test`` on the graph's test nodes. Seconds are of all folds, ``weight`` is the share in what is
            kept, and ``verdict`` says what became of it.
        chosen_by_: With ``"auto"``, the metric and the nodes by which that was chosen; as a string, in words.
    """

    _importance: Importance | None
    _held_out: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    """Numbers and classes of the nodes that were held back for testing; no part of a saved model."""

    def __init__(
        self,
        method: str = AUTO,
        *,
        validation_fraction: float = 0.4,
        random_state: Any = 0,
        device: str = "auto",
        minutes: float | None = None,
        threshold: str | float | None = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = Checkpoint.every,
        verbose: bool | int = True,
        on_epoch: Callable[[Any], None] | None = None,
        **options: Any,
    ) -> None:
        self.method = method
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.minutes = minutes
        self.threshold = threshold
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose
        self.on_epoch = on_epoch
        self.options = options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, the method's options among them."""
        own: dict[str, Any] = super().get_params(deep)
        return own | self.options

    def set_params(self, **parameters: Any) -> Self:
        """Change arguments of the constructor; an :class:`gcnsl.InputError` says if there is no such one."""
        own = {name: value for name, value in parameters.items() if name in self._get_param_names()}
        super().set_params(**own)
        others = {name: value for name, value in parameters.items() if name not in own}
        if not others:
            return self
        if self.method == AUTO:
            AutoSettings.check(**others)
        else:
            find_method(self.method).with_options(**others)
        self.options = self.options | others
        return self

    @property
    def model_(self) -> Module:
        """The trained model."""
        check_is_fitted(self)
        return self.fitted_.model

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """For notebooks, scikit-learn's picture of the estimator and, with ``"auto"``, the leaderboard."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "leaderboard_"):
            bundle["text/html"] += self.leaderboard_.to_html(index=False, na_rep="–", float_format="{:.3g}".format)
        return bundle

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_().get("text/html", "")

    def resolved_method(self) -> Method:
        """The method with its hyper-parameters."""
        return find_method(self.method).with_options(**self.options)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        directed: bool | None = None,
        val_mask: Any = None,
        node_ids: Any = None,
    ) -> Self:
        """Check a graph and train on it.

        Args:
            X: Features (n × d), dense or sparse, NumPy, SciPy or torch; ``None`` if the nodes have none; or a DataFrame
                with columns of any kind, whose index, if it is not 0, 1, 2, ..., are the ``node_ids``.
            y: One label per node, of any type; -1, ``None`` or NaN where it is not known.
            edge_index: Node numbers (2 × E), in any direction and with any repeats; or an adjacency matrix of SciPy
                (n × n); or a networkx graph or a DataFrame with columns ``source`` and ``target``, which have ids.
            edge_weight: A positive weight for each edge (E), for methods that use weights; by default the ``weight`` of
                a DataFrame or a networkx graph, or the entries of a matrix of fractions.
            directed: Whether edges lead from the first to the second node, for methods that use directions; by default
                as a networkx graph says, else not.
            val_mask: The labelled nodes that decide when to stop (n, boolean); the others are learned from. ``None``
                draws ``validation_fraction`` of each class.
            node_ids: The caller's names for the nodes (n), integers or strings, to be kept with the model.
        """
        if edge_index is None:
            raise InputError("edge_index is missing: give the edges; cross-validation takes over_nodes(X, edge_index)")
        edges = {"edge_weight": edge_weight, "directed": directed}
        data = given_graph(X, edge_index, y, node_ids=node_ids, **edges)
        if val_mask is not None:
            data.update(check_masks({"val_mask": val_mask}, data.y, data.num_nodes))
            if data.val_mask.dim() > 1:
                runs = data.val_mask.shape[1]
                raise InputError(f"val_mask has {runs} columns: give those of one run, val_mask[:, run]")
            if not data.val_mask.any():
                raise InputError("val_mask selects no node: give it labelled nodes, or None to have some drawn")
            masks = {"train_mask": (data.y != UNLABELLED) & ~data.val_mask}
            data.update(check_masks(masks, data.y, data.num_nodes, data.class_names))
        return self.fit_graph(data)

    def fit_graph(
        self,
        data: Data,
        *,
        run: int = 0,
        all_labels: bool = False,
        root: Folder = None,
        executor: Executor = HERE,
    ) -> Self:
        """Train on a graph: any PyG ``Data``, or one that :mod:`gcnsl.graph` or ``gcnsl.load`` has made.

        The classes are the graph's ``class_names``. Columns of a table are encoded as the training nodes teach it.

        Args:
            data: A graph with labels. If it has masks (n or n × runs), the labels of nodes in neither the training nor
                the validation mask are not looked at; without masks, all labels are for training. Without validation
                nodes some of the training nodes are drawn.
            run: Which of the splits.
            all_labels: Whether to learn from every label that is not for validation, those of test nodes included.
            root: A folder with dataset files, searched first; only Geom-GCN's published neighbourhoods need any.
            executor: With ``"auto"``, who trains the models, such as a :class:`gcnsl.runs.cluster.Cluster`; by default
                processes of this machine.
        """
        splits, seed = split_count(data), _seed(self.random_state)
        masks = split_masks(data, run, need=("train",) if splits else ())
        data = copy.copy(data)
        data.update({f"{part}_mask": mask if splits else None for part, mask in masks.items()})
        data = from_data(data)
        if data.y is None or not (data.y != UNLABELLED).any():
            raise InputError("the graph has no labels: give it y, one label for each node")
        train_mask, val_mask = masks["train"].cpu(), masks["val"].cpu()
        if not splits:
            train_mask = data.y != UNLABELLED
        if check_flag("all_labels", all_labels):
            train_mask = (data.y != UNLABELLED) & ~val_mask
        if not val_mask.any():
            shown = np.where(train_mask.numpy(), data.y.numpy(), UNLABELLED)
            val_mask = torch.from_numpy(draw_validation(shown, self.validation_fraction, seed=seed))
            train_mask = train_mask & ~val_mask
        minutes = None if self.minutes is None else check_number("minutes", self.minutes, above=0)
        check_rule(self.threshold, data.class_names)
        try:
            with progress(self.verbose) if self.on_epoch is None else nullcontext(self.on_epoch) as on_epoch:
                how: dict[str, Any] = {"minutes": minutes, "seed": seed, "on_epoch": on_epoch}
                if self.method == AUTO:
                    held_back = masks["test"].cpu() & ~(train_mask | val_mask)
                    fit_best(self, data, train_mask, val_mask, held_back, executor=executor, **how)
                else:
                    self._train(encode_columns(data, train_mask), train_mask, val_mask, root=root, **how)
        except Interrupted as interruption:
            if interruption.so_far is not None:
                self._prepare_decisions(data)
            raise
        self._prepare_decisions(data)
        held_out = np.flatnonzero(masks["test"].cpu() & ~(train_mask | val_mask))
        self._held_out = (held_out, data.y.cpu().numpy()[held_out]) if len(held_out) else None
        return self

    def _train(
        self,
        data: Data,
        train_mask: Tensor,
        val_mask: Tensor,
        *,
        minutes: float | None,
        seed: int,
        root: Folder,
        on_epoch: Callable[[Any], None] | None,
    ) -> None:
        """Train on some nodes of a checked graph; other labels are hidden."""
        began, method, checkpoint = time.perf_counter(), self.resolved_method(), None
        known = copy.copy(data)
        known.y = torch.where(train_mask | val_mask, data.y, UNLABELLED)
        prepared = prepare(method, known, rows=train_mask, seed=seed, device=choose_device(self.device), root=root)
        if self.checkpoint is not None:
            facts = {"graph": graph_digest(data)[:16], "gcnsl": __version__}
            identity = {"method": method.name, **method.options(), **facts}
            checkpoint = Checkpoint(self.checkpoint, self.checkpoint_every, identity)
        try:
            fitted = fit(
                prepared,
                train_mask=train_mask,
                val_mask=val_mask,
                seed=seed,
                minutes=None if minutes is None else max(0.0, minutes - (time.perf_counter() - began) / 60),
                on_epoch=on_epoch,
                checkpoint=checkpoint,
            )
        except Interrupted as interruption:
            if interruption.so_far is not None:
                self._keep(interruption.so_far, train_mask, val_mask)
            raise
        self._keep(fitted, train_mask, val_mask)

    def predict(self, X: Any = None, *, edge_index: Any = None, edge_weight: Any = None) -> NDArray[Any]:
        """The classes of all nodes (n), of the training graph or, with arguments, of the graph as it has grown.

        Args:
            X: Features of the training nodes, as they were and in their order, and after them those of the new nodes.
                In a DataFrame with ids as its index, the nodes may be in any order.
            edge_index: The edges of the whole graph, in any form that :meth:`fit` takes, and directed if those in
                training were; by default those in training, if no node is new.
            edge_weight: Their weights, if the method was trained with weights and uses them.

        GCN-SL extends its spectral features to new nodes, and A* joins a new node to training nodes and to itself. If
        no node is new and the edges are the same, predictions are those without arguments, bit for bit. Not all methods
        can take new nodes.
        """
        probabilities = self.predict_proba(X, edge_index=edge_index, edge_weight=edge_weight)
        labels: NDArray[Any] = self.classes_[self.decide(probabilities)]
        return labels

    def predict_proba(self, X: Any = None, *, edge_index: Any = None, edge_weight: Any = None) -> NDArray[Any]:
        """Probabilities of the classes for all nodes (n × C); arguments as in :meth:`predict`."""
        return self._logits(X, edge_index, edge_weight).softmax(dim=1).numpy()

    def predict_proba_graph(self, data: Data) -> NDArray[Any]:
        """Probabilities for the nodes of a checked graph (n × C), in its own order.

        The training nodes must all be there, with the features they had; other nodes are new, and edges may differ.
        Training nodes are found by their ``node_ids``, or are the first nodes if there are none. To predict from tables
        with columns other than complete numbers, read them with ``from_tables(..., encoder=classifier.encoder_)``.
        """
        check_is_fitted(self)
        return self._grown_logits(data).softmax(dim=1).numpy()

    def score(self, X: Any, y: Any, *, edge_index: Any = None, edge_weight: Any = None, nodes: Any = None) -> float:
        """The share of nodes whose class is predicted correctly.

        Args:
            X: ``None`` for the training graph, else as in :meth:`predict`, with ``edge_index`` and ``edge_weight``.
            y: One label per node; nodes without one are left out.
            nodes: Count only these: a mask (n) or node numbers, of nodes held back from training, for example.
        """
        predicted = self.predict(X, edge_index=edge_index, edge_weight=edge_weight)
        counted, truth = labelled_nodes(y, nodes, len(predicted), self.classes_)
        return float((predicted[counted] == truth).mean())

    def evaluate(
        self, X: Any, y: Any, *, edge_index: Any = None, edge_weight: Any = None, nodes: Any = None
    ) -> dict[str, float]:
        """All metrics by name, :data:`gcnsl.training.METRICS`; arguments as in :meth:`score`.

        >>> classifier.evaluate(None, y, nodes=test)["roc-auc"]                           # doctest: +SKIP
        """
        probabilities = self.predict_proba(X, edge_index=edge_index, edge_weight=edge_weight)
        counted, truth = labelled_nodes(y, nodes, len(probabilities), self.classes_)
        numbers = pd.Index(self.classes_).get_indexer(pd.Index(truth))
        if (numbers < 0).any():
            unknown = truth[numbers < 0].tolist()[0]
            raise InputError(f"y holds {unknown!r}, which is no class of the model: give other labels, or other nodes")
        return measure(probabilities[counted], numbers.astype(np.int64))

    def learned_graph(self) -> Data:
        """The learned graph A* of the training nodes: ``edge_index`` (2 × E) and ``edge_weight``, the similarities."""
        check_is_fitted(self)
        model: Any = self.model_
        if not getattr(model, "learns_graph", False):
            raise InputError(f"{self.fitted_.prepared.method.name} learns no graph of its own here")
        edge_index, weight = model.learned_graph(*self.fitted_.prepared.inputs)
        return Data(edge_index=edge_index.cpu(), edge_weight=weight.cpu(), num_nodes=len(self.y_))

    def explain(self, node: Any, *, against: Any = None) -> Explanation:
        """Why a node of the training graph, named by its id or number, has its class and not ``against`` another."""
        from gcnsl.estimator.explanation import explain, find_node

        check_is_fitted(self)
        return explain(self, find_node(self, str(node)), against=against)

    @property
    def importance_(self) -> pd.DataFrame:
        """The importance of each column; see :func:`gcnsl.estimator.importance.measure_importance`."""
        from gcnsl.estimator.importance import measure_importance

        check_is_fitted(self)
        if self._importance is None:
            self._importance = measure_importance(self)
        return self._importance.to_frame()

    def over_nodes(
        self,
        X: Any,
        edge_index: Any,
        *,
        edge_weight: Any = None,
        directed: bool | None = None,
        node_ids: Any = None,
    ) -> ClassifierOverNodes:
        """The same for scikit-learn's cross-validation and searches: an estimator whose samples are nodes.

        These are node numbers or, if X is a DataFrame, some of its rows. Arguments as in :meth:`fit`. A search names
        the options of this classifier ``classifier__NAME``, such as ``classifier__epsilon``.
        """
        edges = {"edge_weight": edge_weight, "directed": directed, "node_ids": node_ids}
        return ClassifierOverNodes(self, X, edge_index, **edges)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the fitted classifier to a folder with one safetensors file, nothing pickled.

        The training graph is saved with it. An older model there is replaced once the new one is complete; of several
        processes that save in one folder, the last one wins. Then the checkpoint is removed, unless training was
        interrupted.
        """
        check_is_fitted(self)
        stored_classifier.save(self, path, overwrite=overwrite)
        if self.checkpoint is not None and self.history_.stopped != "interrupted":
            remove_journal(self.checkpoint) if self.method == AUTO else Checkpoint(self.checkpoint).remove()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read what :meth:`save` wrote; its predictions are the same, bit for bit."""
        classifier = cls()
        stored_classifier.load(classifier, path, device=device)
        return classifier

    def _keep(self, fitted: Fitted | Blend, train_mask: Tensor, val_mask: Tensor) -> None:
        """Set what a fitted classifier has."""
        graph = fitted.graph
        self.fitted_, self.history_, self.graph_ = fitted, fitted.history, graph
        self.classes_, self.n_features_in_ = class_array(graph.class_names), graph.num_features
        self.y_, self.train_mask_, self.val_mask_ = (part.numpy() for part in (graph.y, train_mask, val_mask))
        ids, self.encoder_ = graph.get("node_ids"), graph.get("encoder")
        self.node_ids_ = None if ids is None else ids.to_numpy()
        self._importance = self._held_out = None
        self.test_mask_, self.temperature_ = np.zeros(len(self.y_), dtype=bool), 1.0
        self.threshold_ = self._judged = None

    def _logits(self, X: Any, edge_index: Any, edge_weight: Any) -> Tensor:
        check_is_fitted(self)
        if X is None:
            if edge_index is not None:
                raise InputError("edge_index is given without X: give both, of the whole graph as it has grown")
            return self.fitted_.logits() / self.temperature_
        graph = self.graph_
        kind, known = ("arc" if "arc_index" in graph else "edge"), len(self.y_)
        if edge_index is None:
            if num_rows(X) != known:
                grown = "give edge_index, the edges of the whole graph as it has grown"
                raise InputError(f"X has {num_rows(X)} rows, and training had {known} nodes: {grown}")
            edge_index, edge_weight = graph[f"{kind}_index"].numpy(), graph.get(f"{kind}_weight")
            if self.node_ids_ is not None:
                edge_index = pd.DataFrame(self.node_ids_[edge_index].T, columns=["source", "target"])
        given = {"edge_weight": edge_weight, "directed": kind == "arc", "encoder": self.encoder_}
        ids = self.node_ids_ if num_rows(X) == known and not hasattr(X, "columns") else None
        return self._grown_logits(given_graph(X, edge_index, node_ids=ids, **given))

    def _grown_logits(self, data: Data) -> Tensor:
        ordered, place = in_training_order(self.graph_, data)
        return self.fitted_.grown_logits(ordered)[place] / self.temperature_


def _option_lines() -> str:
    """The options of all methods: those of training once, then those of each model, and last those of auto."""
    every, network = StageSettings.described(), TrainingSettings.described()
    parts = ["Options of every method's training:\n", described_lines(every)]
    parts += ["\nFurther options of the training of networks:\n", described_lines(network[len(every) :])]
    for name, method in METHODS.items():
        own = [option for option in method.described() if option.name in method.config.names()]
        trained, defaults = method.training.described(), method.options()
        other = ", ".join(f"{o.name}={defaults[o.name]}" for o in trained if defaults[o.name] != o.default)
        parts += [f"\nOptions of ``{name}``{f' (trained with {other})' if other else ''}:\n", described_lines(own)]
    return "\n".join([*parts, f"\nOptions of ``{AUTO}``:\n", described_lines(AutoSettings.described())])


NodeClassifier.__doc__ = f"{NodeClassifier.__doc__}\n{indent(_option_lines(), '    ')}\n    "


def _seed(random_state: Any) -> int:
    """A seed from whatever scikit-learn takes for one."""
    if isinstance(random_state, Real):
        return check_seed(random_state, "random_state")
    return int(check_generator(random_state).randint(2**31 - 1))
