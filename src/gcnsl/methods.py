"""Every method by name: the model's hyper-parameters and how it is trained; and one run of one of them.

Adding a method is a file in ``nn/`` and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn import (
    GATConfig,
    GCNConfig,
    GCNSLConfig,
    GeomGCNConfig,
    H2GCNConfig,
    Input,
    MixHopConfig,
    MLPConfig,
    ModelConfig,
    NLGNNConfig,
)
from gcnsl.training import Checkpoint, Epoch, History, TrainingSettings, choose_device, predict_logits, seeded, train

Settings = TypeVar("Settings", ModelConfig, TrainingSettings)


@dataclass(frozen=True)
class Method:
    """A model's configuration, and the settings it is trained with."""

    config: ModelConfig
    training: TrainingSettings

    def options(self) -> dict[str, Any]:
        """All hyper-parameters by name."""
        return asdict(self.config) | asdict(self.training)

    def with_options(self, **options: Any) -> Method:
        """The same with other hyper-parameters; texts are read as what the parameter is."""
        unknown = options.keys() - self.options().keys()
        if unknown:
            model = type(self.config).__name__.removesuffix("Config")
            raise InputError(
                f"{', '.join(sorted(unknown))}: {model} has no such option; there are {', '.join(self.options())}"
            )
        return Method(_with(self.config, options), _with(self.training, options))


METHODS: dict[str, Method] = {
    "mlp": Method(MLPConfig(), TrainingSettings(epochs=2000, patience=100)),
    "gcn": Method(GCNConfig(), TrainingSettings(epochs=2000, patience=100)),
    "gat": Method(GATConfig(), TrainingSettings(epochs=2000, patience=100)),
    "mixhop": Method(MixHopConfig(feature_norm="l2"), TrainingSettings(lr=0.5, optimizer="sgd", epochs=2000)),
    "geom-gcn": Method(
        GeomGCNConfig(), TrainingSettings(lr=0.05, weight_decay=5e-6, epochs=2000, patience=100, plateau_factor=0.8)
    ),
    "h2gcn-1": Method(H2GCNConfig(rounds=1), TrainingSettings(epochs=2000, monitor="accuracy")),
    "h2gcn-2": Method(H2GCNConfig(rounds=2), TrainingSettings(epochs=2000, monitor="accuracy")),
    "nlgnn": Method(NLGNNConfig(), TrainingSettings(lr=0.05, epochs=2000, patience=100)),
    "gcn-sl-cc": Method(GCNSLConfig(merge="concat"), TrainingSettings(lr=0.02)),
    "gcn-sl-av": Method(GCNSLConfig(merge="average"), TrainingSettings(lr=0.02)),
}
"""Those that GCN-SL is compared with have the hyper-parameters of H2GCN's experiments, as in the paper."""
ALIASES = {"gcn-sl": "gcn-sl-cc", "h2gcn": "h2gcn-2"}


def find_method(name: str) -> Method:
    """The method of this name or alias."""
    name = ALIASES.get(name, name)
    if name not in METHODS:
        raise InputError(f"method({name!r}) must be one of {', '.join([*METHODS, *ALIASES])}")
    return METHODS[name]


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Attributes:
        model: With the weights of its best epoch.
        history: Its epochs.
        accuracy: In the best epoch, by mask: ``"train"``, ``"val"`` and ``"test"``.
    """

    model: nn.Module
    history: History
    accuracy: dict[str, float]


def run_split(
    method: Method,
    data: Data,
    inputs: Sequence[Input],
    *,
    run: int,
    seed: int,
    device: str = "auto",
    watch_test: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Outcome:
    """Train on one of a graph's splits and look at its test nodes once, at the end.

    Args:
        method: What to train, and how.
        data: A graph with labels and masks (n, or n × runs).
        inputs: ``method.config.prepare(data, seed=...)``; the same ones serve all runs.
        run: Which split, a column of the masks.
        seed: Of the weights and of dropout.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ...
        watch_test: Whether the test accuracy of every epoch goes into the history, for curves. It decides nothing.
        on_epoch: Called after each epoch.
        checkpoint: See :func:`gcnsl.training.train`.
    """
    on = choose_device(device)
    masks = split_masks(data, run)
    inputs = [value.to(on) for value in inputs]
    with seeded(seed):
        model = method.config.build(data).to(on)
    history = train(
        model,
        inputs,
        data.y,
        train_mask=masks["train"],
        val_mask=masks["val"],
        settings=method.training,
        seed=seed,
        watch={"test": masks["test"]} if watch_test else None,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )
    correct = predict_logits(model, inputs).argmax(dim=1).cpu() == data.y
    return Outcome(model, history, {name: float(correct[mask].float().mean()) for name, mask in masks.items()})


def split_count(data: Data) -> int:
    """How many splits a graph has, the columns of its masks; 0 without masks."""
    if "train_mask" not in data:
        return 0
    return int(data.train_mask.shape[1]) if data.train_mask.dim() == 2 else 1


def split_masks(data: Data, run: int) -> dict[str, Tensor]:
    """The training, validation and test nodes of one run (n each), none of them empty."""
    count = split_count(data)
    if count and not 0 <= run < count:
        raise InputError(f"run({run}) must be from 0 to {count - 1}: the graph has that many splits")
    masks = {}
    for name in ("train", "val", "test"):
        mask = data.get(f"{name}_mask")
        if mask is not None and mask.dim() == 2:
            mask = mask[:, run]
        if mask is None or not mask.any():
            raise InputError(f"the graph has no {name} nodes in run {run}: give every part of a split some nodes")
        masks[name] = mask
    return masks


def _with(settings: Settings, options: Mapping[str, Any]) -> Settings:
    """Settings with those of the options that are theirs."""
    own = {field.name for field in fields(settings)} & options.keys()
    return replace(settings, **{name: _read_option(type(settings), name, options[name]) for name in own})


def _read_option(owner: type, name: str, value: Any) -> Any:
    """A text as what the field is: a number, yes or no, a name, nothing, or whole numbers with commas between."""
    if not isinstance(value, str):
        return value
    kinds = _kinds(get_type_hints(owner)[name])
    if type(None) in kinds and value.lower() == "none":
        return None
    if bool in kinds and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    if tuple in kinds:
        return _whole_numbers(name, value)
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(value)
            except ValueError:
                continue
    if kinds & {int, float, bool} and str not in kinds:
        expected = " or ".join(sorted(kind.__name__ for kind in kinds if kind is not type(None)))
        raise InputError(f"{name}({value!r}) must be {expected}")
    return value


def _whole_numbers(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"{name}({text!r}) must be whole numbers with commas between, such as 0,1,2") from None


_TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _kinds(annotation: Any) -> set[Any]:
    """The types that an annotation allows, ``tuple`` for all tuples; a Literal allows texts."""
    if get_origin(annotation) in (Union, UnionType):
        return {kind for part in get_args(annotation) for kind in _kinds(part)}
    kind = get_origin(annotation) or annotation
    return {kind if isinstance(kind, type) else str}
