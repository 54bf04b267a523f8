"""What is learned and what is tried.

A problem is a graph with folds of its labelled nodes. Candidates are methods in order of their cost and, as Optuna
proposes them, other hyper-parameters of those that do best.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.checks import UNLABELLED
from gcnsl.graph.edges import edge_parts
from gcnsl.identity import identity
from gcnsl.methods import Method, find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.options import Search as SearchRange
from gcnsl.runs.jobs import Job
from gcnsl.sparse import pairs_in_two_steps

if TYPE_CHECKING:
    import optuna

NOT_LEARNED_FROM = -1
MANY_PAIRS = 3e7
"""With more pairs of nodes two steps apart than this, methods that store them are left out."""
PER_ENTRY = {
    "label-propagation": 0.08,
    "logistic": 2.0,
    "boosted-trees": 3.0,
    "twins": 0.7,
    "mlp": 0.07,
    "gcn-sl-plus": 2.4,
    "linkx": 0.2,
    "sage": 0.17,
    "fsgnn": 1.7,
    "gcn": 0.15,
    "h2gcn-2": 6.0,
    "gpr-gnn": 0.14,
    "acm-gcn": 0.4,
    "dir-gcn": 1.2,
}
"""Seconds of one core for each million of features and edges: preparation, one epoch or stage, and a prediction, on a
graph of 20,000 nodes with 64 features and 20 neighbours."""
FIXED = 0.1
"""Seconds that a fit takes on any graph."""
DEEP_LAYERS, DEEP = 5, 6.0
"""From so many layers on, a fit takes so many times as long."""
TURNS = (0, 1, 0, 2, 0, 1)
"""Whose turn it is to have a new candidate, by rank: the best method is tried most often."""
STARTUP_TRIALS = 6
"""So many proposals for a method are drawn before they follow what was good."""
PATIENT_TRIALS = 5
"""None is given up for falling behind before so many are complete."""
_DEEP = {"num_layers": 5, "hidden_channels": 128, "norm": "batch", "dropout": 0.3, "drop_features": False}


@dataclass(frozen=True)
class Candidate:
    """A method with some hyper-parameters, and a name to show.

    Two candidates are equal if they train the same model: whatever their names, and whether or not an option is given
    that has its default value.
    """

    name: str = field(compare=False)
    method: str
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        # With all options, as what is a default today may be another value in the next version.
        text = json.dumps([self.method, self.resolved.options()], sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest()[:16])

    @cached_property
    def resolved(self) -> Method:
        """The method with these hyper-parameters."""
        return find_method(self.method).with_options(**self.options)

    def usual_seconds(self, millions: float) -> float:
        """The time of its shortest fit with so many millions of features and edges, on the machine of the figures."""
        deep = DEEP if self.options.get("num_layers", 0) >= DEEP_LAYERS else 1.0
        return FIXED + PER_ENTRY[self.method] * deep * millions


def portfolio(graph: Data) -> list[Candidate]:
    """The candidates for a graph, each with defaults from its literature, cheap ones first."""
    directed = "arc_index" in graph
    along, undirected = {"direction": "out" if directed else "undirected"}, {"direction": "undirected"}
    entries: list[tuple[str, str, dict[str, Any]]] = [
        ("label-propagation", "", {}),
        ("logistic", "", {}),
        ("boosted-trees", "", {}),
        ("twins", "", along),
        ("mlp", "", {}),
        ("gcn-sl-plus", "", {}),
        ("linkx", "", along),
        ("sage", "deep", _DEEP),
        ("fsgnn", "", along),
        ("gcn", "", {}),
        ("sage", "", {}),
        *((method, "undirected", undirected) for method in ("gcn-sl-plus", "linkx", "fsgnn") if directed),
        *([("sage", "out-edges", along)] if directed else []),
        ("h2gcn-2", "", {}),
        ("gcn", "deep", {**_DEEP, "residual": True}),
        ("gpr-gnn", "", {}),
        ("acm-gcn", "", {}),
        *([("dir-gcn", "", {})] if directed else []),
    ]
    left_out = set() if graph.num_features else {"mlp"}
    if pairs_in_two_steps(graph.edge_index, graph.num_nodes) > MANY_PAIRS:
        left_out.add("h2gcn-2")
    return [
        Candidate(", ".join(filter(None, (find_method(method).title, variant))), method, options)
        for method, variant, options in entries
        if method not in left_out
    ]


@dataclass(frozen=True, kw_only=True)
class FoldJob(Job):
    """Train a candidate on a fold, and give it up after ``limit`` seconds; the candidate's key is the job's name."""

    candidate: Candidate
    limit: float


@dataclass(frozen=True)
class Problem:
    """A graph to learn from, the same for all candidates.

    Attributes:
        graph: A checked graph whose labels are those that may be learned from; others are -1.
        fold: The fold in which a node is for validation (n); :data:`NOT_LEARNED_FROM` for a node without a known
            label, and ``folds`` for one that is for training in all folds.
        folds: Number of folds (K).
        metric: What models are compared by.
        class_weight: What each class weighs in the loss.
        seed: Of preparation, weights and dropout.
        device: Where to train.
    """

    graph: Data
    fold: Tensor
    folds: int
    metric: str
    class_weight: str | None
    seed: int
    device: str

    def masks(self, fold: int) -> dict[str, Tensor]:
        """The nodes for training, and those for validation, in a fold (n each)."""
        return {"train": self.learned & (self.fold != fold), "val": self.fold == fold}

    @property
    def learned(self) -> Tensor:
        """The nodes whose labels may be learned from (n)."""
        return self.fold != NOT_LEARNED_FROM

    def validated(self, folds: int) -> Tensor:
        """The nodes that are for validation in one of the first folds (n)."""
        return self.learned & (self.fold < folds)

    @cached_property
    def identity(self) -> str:
        """Tells problems apart; the method and its options are those of a candidate, which has a key of its own."""
        parts = {"y": self.graph.y, "fold": self.fold}
        return identity(self.graph, parts, metric=self.metric, class_weight=self.class_weight, seed=self.seed)

    def method(self, candidate: Candidate) -> Method:
        """The candidate's method with the problem's class weights; epochs are chosen by its metric.

        Accuracy is an exception: where it is wanted, each method chooses epochs as its literature does.
        """
        monitor = {} if self.metric == "accuracy" else {"monitor": self.metric}
        return candidate.resolved.with_options(class_weight=self.class_weight, **monitor)

    def job(self, candidate: Candidate, fold: int, *, seconds: float, limit: float) -> FoldJob:
        """The job of training a candidate on a fold, in so many seconds."""
        where: dict[str, Any] = {"name": candidate.key, "run": fold, "split": fold, "seed": self.seed + fold}
        return FoldJob(method=self.method(candidate), candidate=candidate, seconds=seconds, limit=limit, **where)


def make_problem(
    graph: Data, train_mask: Tensor, val_mask: Tensor, settings: AutoSettings, *, seed: int, device: str
) -> Problem:
    """The problem of learning from the nodes of two masks (n each), all labelled.

    With ``keep_validation`` the validation nodes are those of the only fold. Otherwise there are as many folds as the
    quality wants, with at least two labelled nodes in each.
    """
    learned, folds = train_mask | val_mask, 1
    known = Data(x=graph.x, y=torch.where(learned, graph.y, UNLABELLED), **edge_parts(graph))  # all that methods read
    known.class_names, known.num_nodes = graph.class_names, graph.num_nodes
    known.feature_names = graph.get("feature_names")
    if settings.keep_validation:
        fold = torch.where(train_mask, 1, torch.where(val_mask, 0, NOT_LEARNED_FROM))
    else:
        folds = max(2, min(settings.effort.folds, int(learned.sum()) // 2))
        fold = deal_folds(known.y, folds, seed=seed)
    return Problem(known, fold, folds, settings.metric, settings.class_weight, seed, device)


def deal_folds(y: Tensor, folds: int, *, seed: int) -> Tensor:
    """The fold of each labelled node, -1 for others (n). The nodes are dealt out like cards, one class after another.

    So the folds are of equal size, and so are the shares of each class, up to one node.
    """
    labels = y.numpy()
    shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(labels != UNLABELLED))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = torch.full_like(y, NOT_LEARNED_FROM)
    fold[torch.from_numpy(by_class)] = torch.arange(len(by_class)) % folds
    return fold


def new_study(
    space: Mapping[str, SearchRange],
    first: Iterable[Mapping[str, Any]],
    *,
    seed: int,
    known: Sequence[tuple[Mapping[str, Any], Sequence[float], bool]] = (),
    startup: int = STARTUP_TRIALS,
) -> optuna.Study:
    """What proposes hyper-parameters of one method, none of them twice if they come from ``first``.

    Args:
        space: The search range of each.
        first: What is proposed before all else; values that can't be suggested are left to the sampler.
        seed: Of the proposals. It moves on with what is known, lest those after it repeat it.
        known: What was tried before: the hyper-parameters, how good they were after each fold, more being better, and
            whether the last of these was reached.
        startup: How many are drawn before they follow what was good.
    """
    import optuna  # workers need nothing of it

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(n_startup_trials=startup, seed=seed + len(known)),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=PATIENT_TRIALS),
    )
    states = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED
    tried = [dict(options) for options, *_ in known]
    for options, gains, is_complete in known:
        trial = optuna.trial.FixedTrial(dict(options))
        with suppress(ValueError):  # nothing is learned from a value outside of the range
            suggested(trial, space)
            was: dict[str, Any] = {"params": trial.params, "distributions": trial.distributions, "value": gains[-1]}
            was |= {"intermediate_values": dict(enumerate(gains))}
            study.add_trial(optuna.trial.create_trial(state=states[not is_complete], **was))
    for each in first:
        if each not in tried:
            study.enqueue_trial({k: v for k, v in each.items() if v in (space[k].values or (v,))})
            tried.append(dict(each))
    return study


def suggested(trial: optuna.trial.BaseTrial, space: Mapping[str, SearchRange]) -> dict[str, Any]:
    """The hyper-parameters of a trial."""
    with warnings.catch_warnings():  # a value that was given may be outside of the range
        warnings.filterwarnings("ignore", ".* out of (the )?range", UserWarning)
        return {name: suggest(trial, name) for name, suggest in space.items()}


class Proposals:
    """Further candidates: other hyper-parameters of the methods that do best, from one study for each method.

    Args:
        trials: How many candidates are proposed in all.
        seed: Of the suggestions.
        tried: What an earlier command has proposed, and how good each is.
    """

    def __init__(self, trials: int, *, seed: int, tried: Sequence[tuple[Candidate, float]] = ()) -> None:
        self._trials, self._seed, self._studies = trials, seed, dict[str, "optuna.Study"]()
        self._tried = [each for each in tried if space_of(each[0].method).keys() <= each[0].options.keys()]
        self._count = max((int(candidate.name.rpartition("#")[2]) for candidate, _ in self._tried), default=0)

    def ask(self, ranking: Sequence[str]) -> tuple[Candidate, optuna.Trial] | None:
        """A new candidate of one of the methods, the best first; ``None`` if there have been enough."""
        if self._count >= self._trials or not ranking:
            return None
        method = ranking[TURNS[self._count % len(TURNS)] % len(ranking)]
        self._count += 1
        if method not in self._studies:
            self._studies[method] = self._study(method)
        trial = self._studies[method].ask()
        options = suggested(trial, space_of(method))
        return Candidate(f"{find_method(method).title} #{self._count}", method, options), trial

    def _study(self, method: str) -> optuna.Study:
        space = space_of(method)
        whole = (find_method(method).with_options(**start).options() for start in starts_of(method))
        known = [(each.options, [gain], True) for each, gain in self._tried if each.method == method]
        return new_study(
            space, ({name: options[name] for name in space} for options in whole), seed=self._seed, known=known
        )
