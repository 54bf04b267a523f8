"""One run on one split: train, and look at the test nodes once, at the end."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from gcnsl.graph import encode_columns, split_masks
from gcnsl.methods import Fitted, Method, Prepared, fit, prepare
from gcnsl.methods.prepared import depends_on_split
from gcnsl.training import Epoch


class Preparations:
    """A method's inputs on a graph: made once for all splits or, if training nodes decide on them, for each split.

    Args:
        method: The method.
        data: A graph with labels and masks (n × runs).
        **options: The seed, the device and the folder of :func:`gcnsl.methods.prepare`.
    """

    def __init__(self, method: Method, data: Data, **options: Any) -> None:
        self._method, self._data, self._options = method, data, options
        self._by_split = depends_on_split(method.config, data)
        self._last: tuple[int, Prepared] | None = None

    def on(self, run: int) -> Prepared:
        """The inputs on one of the splits."""
        if self._last is None or (self._by_split and self._last[0] != run):
            rows = split_masks(self._data, run)["train"] if self._by_split else None
            data = self._data if rows is None else encode_columns(self._data, rows)
            self._last = run, prepare(self._method, data, rows=rows, **self._options)
        return self._last[1]


class Outcome(NamedTuple):
    """What came of one run: the trained model, the split's masks (n each), and the accuracy on each of its parts.

    The parts are ``"train"``, ``"val"`` and ``"test"``; ``fitted.measure(masks["test"])`` gives all metrics.
    """

    fitted: Fitted
    masks: dict[str, Tensor]
    accuracy: dict[str, float]


def run_split(
    prepared: Prepared,
    *,
    run: int,
    seed: int,
    watch_test: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Outcome:
    """Train on one of a graph's splits and look at its test nodes once, at the end.

    Args:
        prepared: The method, and a graph with labels and masks (n × runs) as it reads it; the same one serves all runs.
        run: Which split, a column of the masks.
        seed: Of the weights and of dropout.
        watch_test: Whether the test accuracy of every epoch goes into the history, for curves. It decides nothing.
    """
    masks = split_masks(prepared.graph, run)
    fitted = fit(
        prepared,
        train_mask=masks["train"],
        val_mask=masks["val"],
        seed=seed,
        watch={"test": masks["test"]} if watch_test else None,
        on_epoch=on_epoch,
    )
    return Outcome(fitted, masks, fitted.accuracy(masks))
