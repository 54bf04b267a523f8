"""One run on one split: train, and look at the test nodes once, at the end."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from gcnsl.graph import split_masks
from gcnsl.methods import Fitted, Prepared, fit
from gcnsl.training import Epoch


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
