import os
import signal

import pytest
import torch
from torch import nn

from gcnsl.errors import InputError, Interrupted
from gcnsl.training import StageSettings, fit_in_stages

from .cases import DATA, MASKS, TEST, TRAIN


class Staged(nn.Module):
    """Each stage has another certainty of the right class, by a script."""

    def __init__(self, script) -> None:
        super().__init__()
        self.script, self.seen = script, None
        self.register_buffer("certainty", torch.tensor(0.0))

    def stages(self, inputs, y, weight):
        self.seen = y, weight
        for certainty in self.script:
            self.certainty.fill_(certainty)
            yield

    def forward(self):
        return self.certainty * nn.functional.one_hot(DATA.y, 3).float()


def fit(model, *, settings=StageSettings(), **options):  # noqa: B008 - it is frozen
    return fit_in_stages(model, [], DATA.y, **({"settings": settings, "seed": 0, **MASKS} | options))


def test_the_model_has_its_best_stage() -> None:
    model, seen = Staged([1, 3, 2]), []
    history = fit(model, on_epoch=seen.append, watch={"test": TEST})
    assert float(model.certainty) == 3
    assert (history.best_epoch, len(history), history.stopped) == (2, 3, "complete")
    assert history["val_loss"] == [epoch.val_loss for epoch in seen]
    assert seen[-1].accuracy == {"train": 1, "val": 1, "test": 1}
    assert history.seconds > 0
    assert not model.training


@pytest.mark.parametrize(
    ("script", "settings", "epochs", "why"),
    [
        ([1, 2, 3, 4], {"epochs": 2}, 2, "epochs"),
        ([4, 3, 2, 1], {"patience": 2}, 3, "patience"),
        ([1, 2], {"epochs": 5, "patience": 5}, 2, "complete"),
    ],
)
def test_it_ends_as_training_does(script, settings, epochs, why) -> None:
    history = fit(Staged(script), settings=StageSettings(**settings))
    assert (len(history), history.stopped) == (epochs, why)


def test_one_stage_always_fits_into_the_time() -> None:
    history = fit(Staged([1, 2, 3]), minutes=0)
    assert (len(history), history.stopped) == (1, "minutes")


def test_only_labels_of_training_nodes_are_shown_with_their_weights() -> None:
    model = Staged([1])
    fit(model, settings=StageSettings(class_weight={"1": 5}))
    y, weight = model.seen
    assert y.equal(torch.where(TRAIN, DATA.y, -1))
    assert weight[TRAIN].equal(torch.where(DATA.y == 1, 5.0, 1.0)[TRAIN])


def test_a_metric_chooses_the_stage_and_the_loss_decides_between_equal_ones() -> None:
    history = fit(Staged([1, 3, 2]), settings=StageSettings(monitor="macro-f1"))
    assert history["val_macro-f1"] == [1, 1, 1]
    assert history.best_epoch == 2


@pytest.mark.parametrize(("script", "kept"), [([2, 1, None], 2), ([None], None)])
def test_ctrl_c_ends_it_with_the_best_stage_so_far(script, kept) -> None:
    class Interrupting(Staged):
        def stages(self, inputs, y, weight):
            for certainty in self.script:
                if certainty is None:
                    os.kill(os.getpid(), signal.SIGINT)
                self.certainty.fill_(certainty or 0)
                yield

    model = Interrupting(script)
    with pytest.raises(Interrupted, match="in the first epoch" if kept is None else "after epoch 2") as stop:
        fit(model)
    if kept is None:
        assert stop.value.so_far is None
    else:
        assert float(model.certainty) == kept
        assert stop.value.so_far.stopped == "interrupted"


def test_masks_are_checked() -> None:
    with pytest.raises(InputError, match="val_mask selects no node"):
        fit(Staged([1]), val_mask=torch.zeros(60, dtype=torch.bool))
