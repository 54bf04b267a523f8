import shutil

import pytest

from gcnsl.errors import InputError
from gcnsl.selection.candidates import Candidate
from gcnsl.selection.fold_fit import FoldJob
from gcnsl.selection.journal import Journal, remove_journal

from .cases import small_problem, written_fit

MLP = Candidate("MLP", "mlp", {"epochs": 2})


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with two fits."""
    problem, path = small_problem(), tmp_path_factory.mktemp("journal")
    journal = Journal(path, problem.identity)
    return path, problem, [written_fit(problem, journal, FoldJob(MLP, fold, 60.0, 60.0, 5.0 * fold)) for fold in (0, 1)]


def test_inputs_are_written_with_the_first_fold_alone(tmp_path) -> None:
    problem, candidate = small_problem(), Candidate("logistic", "logistic")
    journal = Journal(tmp_path, problem.identity)
    for fold in (0, 1):
        written_fit(problem, journal, FoldJob(candidate, fold, 60.0, 60.0, 0.0))
    parts = [{name.partition(".")[0] for name in journal.model(candidate, fold).tensors} for fold in (0, 1)]
    assert parts == [{"model", "precomputed"}, {"model"}]


def test_what_was_written_is_read(written) -> None:
    path, problem, fits = written
    read = list(Journal(path, problem.identity).read())
    for one, other in zip(read, fits, strict=True):
        assert vars(one) | {"probabilities": None} == vars(other) | {"probabilities": None}
        assert (one.candidate.name, one.candidate.options) == ("MLP", {"epochs": 2})
        assert (one.probabilities == other.probabilities).all()


def test_another_problem_is_refused(written) -> None:
    with pytest.raises(InputError, match="belongs to another selection"):
        list(Journal(written[0], "another").read())


@pytest.mark.parametrize("damage", [lambda content: content[:50], lambda content: b"no model"])
def test_damage_is_noticed(written, tmp_path, damage) -> None:
    path, problem, _ = written
    copy = shutil.copytree(path, tmp_path / "copy")
    file = next(copy.glob("*.safetensors"))
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InputError, match=r"can't be read .*; delete it to start again"):
        list(Journal(copy, problem.identity).read())


def test_an_unfinished_file_is_not_read(written, tmp_path) -> None:
    path, problem, _ = written
    copy = shutil.copytree(path, tmp_path / "copy")
    (copy / ".x.safetensors.part").write_bytes(b"killed while writing")
    assert len(list(Journal(copy, problem.identity).read())) == 2


def test_a_file_is_no_journal(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        Journal(tmp_path / "file", "").check_place()
    Journal(tmp_path / "nothing", "").check_place()


def test_it_is_removed(tmp_path) -> None:
    (tmp_path / "journal").mkdir()
    remove_journal(tmp_path / "journal")
    remove_journal(tmp_path / "journal")
    assert not (tmp_path / "journal").exists()


def test_nothing_else_is_removed_with_it(written, tmp_path) -> None:
    folder = shutil.copytree(written[0], tmp_path / "folder")
    (folder / "model").mkdir()
    for own in (folder / "my-notes.run", folder / "model" / "tensors.safetensors"):
        own.write_text("mine")
    remove_journal(folder)
    assert sorted(path.name for path in folder.rglob("*")) == ["model", "my-notes.run", "tensors.safetensors"]
