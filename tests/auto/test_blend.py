import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gcnsl.auto.blend import Blend, BlendWarning, Member
from gcnsl.auto.ensemble import tempered
from gcnsl.errors import InputError
from gcnsl.training import History

LOGITS = {"one": torch.randn(5, 3), "two": torch.randn(5, 3), "three": torch.randn(5, 3)}


class FakeFit:
    """A fitted model that always says the same, and may refuse grown graphs."""

    def __init__(self, name: str, *, refuses: bool = False) -> None:
        self.name, self.refuses = name, refuses

    def logits(self) -> torch.Tensor:
        return LOGITS[self.name]

    def grown_logits(self, graph: object) -> torch.Tensor:
        if self.refuses:
            raise InputError(f"{self.name} can't take new nodes")
        return LOGITS[self.name]


def blend(monkeypatch, *, refuses: tuple[str, ...] = ()) -> Blend:
    monkeypatch.setattr("gcnsl.auto.blend.grown_logits", lambda fits, graph: [f.grown_logits(graph) for f in fits])
    fits = {name: FakeFit(name, refuses=name in refuses) for name in LOGITS}
    members = (Member("A", 0.75, 2.0, (fits["one"], fits["two"])), Member("B", 0.25, 1.0, (fits["three"],)))
    return Blend(members, History(), Data())


def of(name: str) -> np.ndarray:
    return LOGITS[name].softmax(dim=1).numpy()


def test_the_weighted_mean_of_probabilities(monkeypatch) -> None:
    expected = 0.75 * tempered((of("one") + of("two")) / 2, 2.0) + 0.25 * of("three")
    made = blend(monkeypatch)
    assert made.logits().softmax(dim=1).numpy() == pytest.approx(expected, abs=1e-6)
    assert torch.equal(made.grown_logits(None), made.logits())


def test_members_that_cannot_are_left_out_and_named(monkeypatch) -> None:
    made = blend(monkeypatch, refuses=("two",))
    with pytest.warns(BlendWarning, match="A can't predict this graph and is left out of the ensemble, 75% of its w"):
        grown = made.grown_logits(None)
    assert grown.softmax(dim=1).numpy() == pytest.approx(of("three"), abs=1e-6)
    with pytest.raises(InputError, match="one can't take new nodes"):
        blend(monkeypatch, refuses=("one", "three")).grown_logits(None)
