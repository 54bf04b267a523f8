import os
import shlex
import signal
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from gcnsl import NodeClassifier, cli
from gcnsl.cli.after_training import save_so_far, say_if_interrupted
from gcnsl.errors import Interrupted
from gcnsl.training import History

from .cases import TRAIN


class Saved:
    """A classifier that remembers where it was saved."""

    def __init__(self, history: History) -> None:
        self.history_, self.places = history, []

    def save(self, path: Path) -> None:
        self.places.append(path)


@pytest.mark.parametrize(
    ("values", "told"),
    [({}, "training was interrupted; this is"), ({"val_loss": [1.0, 2.0]}, "training was interrupted after epoch 2;")],
)
def test_a_model_that_was_interrupted_is_named(values, told, capsys) -> None:
    say_if_interrupted(SimpleNamespace(history_=History(values=values, stopped="interrupted")))
    assert told in capsys.readouterr().err.replace("\n", " ")
    say_if_interrupted(SimpleNamespace(history_=History(values=values, stopped="patience")))
    assert capsys.readouterr().err == ""


def test_the_best_so_far_is_saved_unless_an_older_model_is_spared(tmp_path) -> None:
    classifier, interruption = Saved(History(stopped="interrupted")), Interrupted("after 3 models; what", "so far")
    output, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    asked = SimpleNamespace(output=output, checkpoint=lambda: checkpoint)
    told = save_so_far(classifier, interruption, asked, spared=False)
    assert told.startswith(f"after 3 models; {tmp_path / 'model'} is the best model so far. This begins anew:\n  gcnsl")
    checkpoint.mkdir()
    assert "is still the older model. This continues:" in save_so_far(classifier, interruption, asked, spared=True)
    asked = SimpleNamespace(output=output, checkpoint=lambda: None)
    told = save_so_far(classifier, interruption, asked, spared=True)
    assert "This begins anew" in told, "the checkpoint is that of another command"
    assert classifier.places == [tmp_path / "model"]
    asked = SimpleNamespace(output=None, checkpoint=lambda: None)
    assert "nothing was saved: -o FOLDER" in save_so_far(classifier, interruption, asked, spared=False)


@pytest.fixture
def pressing(monkeypatch):
    """Ctrl-C is pressed in the fourth epoch."""

    @contextmanager
    def epochs_shown(**_):
        yield lambda epoch: os.kill(os.getpid(), signal.SIGINT) if epoch.number == 4 else None

    with monkeypatch.context() as patched:
        patched.setattr("gcnsl.cli.train_one.epochs_shown", epochs_shown)
        yield


@pytest.mark.usefixtures("pressing")
def test_ctrl_c_saves_even_without_checkpoints(gcnsl, people, tmp_path) -> None:
    command = ("train", *people, *TRAIN, "-o", str(tmp_path / "model"))
    code, out, err = gcnsl(*command)
    assert (code, out) == (cli.INTERRUPTED, "")
    classifier = NodeClassifier.load(tmp_path / "model")
    assert (len(classifier.history_), classifier.history_.stopped) == (4, "interrupted")
    assert err == (
        "Interrupted: saving the best model so far\n"
        f"Interrupted: after epoch 4; {tmp_path / 'model'} is the best model so far, of epoch "
        f"{classifier.history_.best_epoch}. This continues:\n  {shlex.join(['gcnsl', *command])}\n"
    )
    for use in (("predict", tmp_path / "model"), ("explain", tmp_path / "model", "p12")):
        code, _, err = gcnsl(*use)
        assert code == 0
        assert err.startswith("Note: training was interrupted after epoch 4; this is the best model until then")
    code, _, err = gcnsl("train", *people, *TRAIN, "-o", tmp_path / "model", "--set", "epsilon=0.5")
    assert code == cli.BAD_INPUT
    assert "belongs to another run: epsilon is 0.95 there and 0.5 here; delete it to start again" in err
    assert gcnsl(*command)[0] == 0
    assert NodeClassifier.load(tmp_path / "model").history_.stopped == "epochs"
    assert not (tmp_path / "model.checkpoint").exists()


@pytest.mark.usefixtures("pressing")
def test_ctrl_c_ends_a_fit_without_a_checkpoint(gcnsl, people, tmp_path) -> None:
    command = ("train", *people, "--method", "label-propagation", "-o", str(tmp_path / "model"))
    code, out, err = gcnsl(*command)
    assert (code, out) == (cli.INTERRUPTED, "")
    classifier = NodeClassifier.load(tmp_path / "model")
    assert (len(classifier.history_), classifier.history_.stopped) == (4, "interrupted")
    assert f"epoch {classifier.history_.best_epoch}. This begins anew:\n  {shlex.join(['gcnsl', *command])}\n" in err


def test_ctrl_c_spares_an_older_model(gcnsl, people, model, request) -> None:
    older = (model / "config.json").read_bytes()
    request.getfixturevalue("pressing")
    _, _, err = gcnsl("train", *people, *TRAIN, "--seed", 1, "-o", model)
    assert f"after epoch 4; {model} is still the older model. This continues:\n  gcnsl train " in err
    assert (model / "config.json").read_bytes() == older
    assert model.with_name("model.checkpoint").exists()


@pytest.mark.usefixtures("pressing")
def test_ctrl_c_without_output_says_that_nothing_is_saved(gcnsl, people) -> None:
    code, _, err = gcnsl("train", *people, *TRAIN)
    assert code == cli.INTERRUPTED
    assert err == "Interrupted: after epoch 4; nothing was saved: -o FOLDER saves the best model so far\n"
