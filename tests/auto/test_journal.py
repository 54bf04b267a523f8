import os
import shutil

import pytest

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.journal import Journal, JournalWarning, remove_journal
from gcnsl.errors import InputError
from gcnsl.methods import fit, prepare
from gcnsl.training import choose_device

from .cases import fitted, small_problem

MLP = Candidate("MLP", "mlp", {"epochs": 2})


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with two fits."""
    problem, path = small_problem(), tmp_path_factory.mktemp("journal")
    journal = Journal(path, problem.identity)
    return path, problem, [fitted(problem, journal, MLP, fold, elapsed=5.0 * fold) for fold in (0, 1)]


def test_what_was_written_is_read(written) -> None:
    path, problem, fits = written
    read = list(Journal(path, problem.identity).read())
    for one, other in zip(read, fits, strict=True):
        assert vars(one) | {"probabilities": None} == vars(other) | {"probabilities": None}
        assert (one.candidate.name, one.candidate.options) == ("MLP", {"epochs": 2})
        assert (one.probabilities == other.probabilities).all()


def test_another_problem_is_refused(written) -> None:
    with pytest.raises(InputError, match=r"belongs to another selection: .*version of gcnsl differ; delete it to"):
        list(Journal(written[0], "another").read())


def test_without_a_folder_all_is_in_memory(written) -> None:
    _, problem, fits = written
    journal = Journal(None, problem.identity)
    kept = [fitted(problem, journal, MLP, fold, elapsed=5.0 * fold) for fold in (0, 1)]
    assert all((one.probabilities == other.probabilities).all() for one, other in zip(kept, fits, strict=True))
    assert_same_models(journal, Journal(written[0], problem.identity))
    assert journal.read() == []


def assert_same_models(journal: Journal, other: Journal) -> None:
    for fold in (0, 1):
        model, same = journal.model(MLP, fold), other.model(MLP, fold)
        assert model.tensors.keys() == same.tensors.keys()
        assert all(tensor.equal(same.tensors[name]) for name, tensor in model.tensors.items())


def test_what_cannot_be_written_is_kept_in_memory(written, tmp_path, monkeypatch) -> None:
    _, problem, fits = written
    journal = Journal(tmp_path / "j", problem.identity)
    fitted(problem, journal, MLP, 0)

    def full(*_) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(JournalWarning) as warned:
            kept = [fitted(problem, journal, MLP, fold) for fold in (1, 2)]
    (told,) = [str(each.message) for each in warned]
    assert told.startswith(f"cannot write {tmp_path}/j/{MLP.key}-1.safetensors: No space left on device; what is in ")
    assert told.endswith("j stays, but the rest can't be resumed if this is killed")
    assert (kept[0].probabilities == fits[1].probabilities).all()
    assert_same_models(journal, Journal(written[0], problem.identity))
    assert [path.name for path in (tmp_path / "j").iterdir()] == [f"{MLP.key}-0.safetensors"]
    fitted(problem, journal, MLP, 3)
    assert [fit.fold for fit in Journal(tmp_path / "j", problem.identity).read()] == [0, 3], "there is room again"


@pytest.mark.parametrize("damage", [lambda content: content[:50], lambda content: b"no model"])
def test_damage_is_noticed(written, tmp_path, damage) -> None:
    path, problem, _ = written
    copy = shutil.copytree(path, tmp_path / "copy")
    file = next(copy.glob("*.safetensors"))
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InputError, match=r"can't be read .*; delete it to start again"):
        list(Journal(copy, problem.identity).read())


GCN = Candidate("GCN", "gcn", {"epochs": 5})


def test_a_fold_is_trained_as_anything_else_and_written_down(tmp_path) -> None:
    problem = small_problem()
    journal = Journal(tmp_path / "journal", problem.identity)
    found = [fitted(problem, journal, GCN, fold, elapsed=10.0) for fold in (0, 1)]
    assert [each.fold for each in journal.read()] == [0, 1]
    prepared = prepare(
        GCN.resolved, problem.graph, rows=problem.learned, seed=problem.seed, device=choose_device("cpu")
    )
    for fold in (0, 1):
        mask = problem.masks(fold)
        oracle = fit(prepared, train_mask=mask["train"], val_mask=mask["val"], seed=problem.seed + fold)
        assert (found[fold].probabilities == oracle.logits().softmax(dim=1).numpy()).all()
        assert 0 < found[fold].least_seconds < found[fold].seconds + found[fold].predict_seconds
        assert not found[fold].is_cut


def test_nothing_else_is_removed_with_it(written, tmp_path) -> None:
    folder = shutil.copytree(written[0], tmp_path / "folder")
    (folder / "model").mkdir()
    for own in (folder / "my-notes.run", folder / "model" / "tensors.safetensors"):
        own.write_text("mine")
    remove_journal(folder)
    assert sorted(path.name for path in folder.rglob("*")) == ["model", "my-notes.run", "tensors.safetensors"]
