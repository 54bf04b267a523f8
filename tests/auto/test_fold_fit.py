import pickle

import numpy as np
import pytest

from gcnsl.auto import fold_fit
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.fold_fit import FoldFitter, FoldJob, method_for
from gcnsl.auto.journal import Journal
from gcnsl.errors import InputError, Interrupted, TrainingDiverged
from gcnsl.methods import fit, prepare
from gcnsl.training import choose_device
from gcnsl.training.state import RunState

from .cases import small_problem, written_fit

tensors = RunState.tensors
GCN = Candidate("GCN", "gcn", {"epochs": 5})


def test_a_fold_is_trained_as_anything_else_and_written_down(tmp_path) -> None:
    problem = small_problem()
    journal = Journal(tmp_path / "journal", problem.identity)
    found = [written_fit(problem, journal, FoldJob(GCN, fold, 60.0, 60.0, 10.0)) for fold in (0, 1)]
    assert [each.fold for each in journal.read()] == [0, 1]
    prepared = prepare(
        GCN.resolved, problem.graph, rows=problem.learned, seed=problem.seed, device=choose_device("cpu")
    )
    for fold in (0, 1):
        train, val = problem.masks(fold)
        oracle = fit(prepared, train_mask=train, val_mask=val, seed=problem.seed + fold)
        assert (found[fold].probabilities == oracle.logits().softmax(dim=1).numpy()).all()
        assert found[fold].elapsed >= 10 + found[fold].seconds > 10
        assert 0 < found[fold].least_seconds < found[fold].seconds + found[fold].predict_seconds


def test_the_time_bounds_training(tmp_path) -> None:
    problem = small_problem()
    written_fit(problem, Journal(tmp_path, problem.identity), FoldJob(Candidate("GCN", "gcn"), 0, 0.0, 1.0, 0.0))
    stored = Journal(tmp_path, problem.identity).model(Candidate("GCN", "gcn"), 0)
    assert len(stored.plain["history"]["values"]["val_loss"]) == 1
    assert stored.plain["history"]["stopped"] == "minutes"


def test_metric_and_class_weights_reach_every_candidate() -> None:
    method = method_for(small_problem(metric="roc-auc", class_weight="balanced"), GCN)
    assert (method.training.monitor, method.training.class_weight, method.training.epochs) == ("roc-auc", "balanced", 5)
    assert method_for(small_problem(), GCN) == GCN.resolved


def test_a_fit_that_was_cut_is_continued_to_the_bits_of_an_undisturbed_one(tmp_path) -> None:
    problem = small_problem()
    journal, other = Journal(tmp_path / "cut", problem.identity), Journal(tmp_path / "whole", problem.identity)
    cut = written_fit(problem, journal, FoldJob(GCN, 0, 0.0, 1.0, 0.0))
    assert cut.is_cut
    run = journal.run(GCN, 0)
    assert run is not None
    continued = written_fit(problem, journal, FoldJob(GCN, 0, 60.0, 60.0, 1.0, cut.seconds, run))
    whole = written_fit(problem, other, FoldJob(GCN, 0, 60.0, 60.0, 0.0))
    assert not continued.is_cut
    assert journal.run(GCN, 0) is None
    assert (continued.probabilities == whole.probabilities).all()
    assert (continued.probabilities != cut.probabilities).any()
    assert continued.seconds > cut.seconds
    assert [fit.is_cut for fit in journal.read()] == [False]


def test_the_state_is_kept_only_if_training_was_cut(monkeypatch) -> None:
    written, fitter = [], FoldFitter(small_problem())
    monkeypatch.setattr(RunState, "tensors", lambda state: written.append(state) or tensors(state))
    monkeypatch.setattr("tempfile.mkdtemp", None)  # nothing is written on a disk, which a killed worker could leave
    whole = fitter(FoldJob(GCN, 0, 60.0, 60.0, 0.0))
    assert (whole.run, written) == (None, [])
    cut = fitter(FoldJob(GCN, 0, 0.0, 1.0, 0.0))
    assert len(written) == 1
    continued = fitter(FoldJob(GCN, 0, 60.0, 60.0, 0.0, 1.0, cut.run))
    assert (continued.run, len(written)) == (None, 1)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TrainingDiverged("loss"), "training diverged"),
        (MemoryError(), "not enough memory"),
        (RuntimeError("CUDA out of memory"), "not enough memory"),
        (RuntimeError("std::bad_alloc"), "not enough memory"),
        (InputError("why"), "why"),
        (np.linalg.LinAlgError("Singular matrix"), "LinAlgError: Singular matrix"),
        (KeyError("a mistake"), "KeyError: 'a mistake'"),
    ],
)
@pytest.mark.parametrize("where", ["fit", "prepare"])
def test_what_fails_says_why(error, why, where, monkeypatch) -> None:
    def failing(*_, **__):
        raise error

    monkeypatch.setattr(fold_fit, where, failing)
    failed = FoldFitter(small_problem())(FoldJob(GCN, 0, 60.0, 60.0, 0.0))
    assert failed.why == why
    assert "in failing" in failed.traceback


def test_an_interruption_is_no_failure(monkeypatch) -> None:
    def interrupted(*_, **__):
        raise Interrupted("interrupted")

    monkeypatch.setattr(fold_fit, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FoldFitter(small_problem())(FoldJob(GCN, 0, 60.0, 60.0, 0.0))


def test_what_was_prepared_stays_where_it_is() -> None:
    fitter = FoldFitter(small_problem())
    before = len(pickle.dumps(fitter))
    fitter(FoldJob(GCN, 0, 60.0, 60.0, 0.0))
    assert len(pickle.dumps(fitter)) < before + 500
