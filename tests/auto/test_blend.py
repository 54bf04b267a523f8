import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.ensemble import Blend, Member, OutOfFold, tempered
from gcnsl.auto.journal import restored_blend, saved_blend
from gcnsl.errors import InputError
from gcnsl.methods import fit, prepare
from gcnsl.training import History

from .cases import small_problem

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
    monkeypatch.setattr("gcnsl.auto.ensemble.grown_logits", lambda fits, graph: [f.grown_logits(graph) for f in fits])
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


CPU = torch.device("cpu")


def fits(problem, method: str, folds: int = 2) -> tuple:
    candidate = Candidate(method, method, {"epochs": 2})
    prepared = prepare(candidate.resolved, problem.graph, rows=problem.learned, seed=0, device=CPU)
    masks = (problem.masks(fold) for fold in range(folds))
    return tuple(fit(prepared, train_mask=mask["train"], val_mask=mask["val"], seed=0) for mask in masks)


def test_an_ensemble_is_restored_bit_for_bit() -> None:
    problem = small_problem()
    nodes = problem.validated(2).nonzero().flatten()
    judged = OutOfFold(nodes, torch.rand(len(nodes), 3), problem.fold[nodes])
    members = (
        Member("x", 0.7, 1.5, fits(problem, "boosted-trees")),
        Member("y", 0.3, 0.8, fits(problem, "gcn-sl-plus")),
    )
    blend = Blend(members, History(seconds=3.0, stopped="minutes"), problem.graph, 0.9, None, judged)
    saved = saved_blend(blend, {"quality": "fast"})
    assert not any(name.startswith(("member.0.1.features", "member.0.1.precomputed")) for name in saved.tensors)
    again = restored_blend(saved, problem.graph, CPU)
    assert torch.equal(again.logits(), blend.logits())
    assert again.members[0].fits[0].prepared is again.members[0].fits[1].prepared
    assert [(m.name, m.weight, m.temperature) for m in again.members] == [("x", 0.7, 1.5), ("y", 0.3, 0.8)]
    assert again.history == blend.history
    assert all(map(torch.equal, again.out_of_fold, judged))
