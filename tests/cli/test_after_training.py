from pathlib import Path
from types import SimpleNamespace

import pytest

from gcnsl.cli.after_training import save_so_far, say_if_interrupted
from gcnsl.errors import Interrupted
from gcnsl.training import History


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
    told = save_so_far(classifier, interruption, tmp_path / "model", spared=False)
    assert told.startswith(f"after 3 models; {tmp_path / 'model'} is the best model so far. This begins anew:\n  gcnsl")
    (tmp_path / "model.checkpoint").mkdir()
    told = save_so_far(classifier, interruption, tmp_path / "model", spared=True)
    assert "is still the older model. This continues:" in told
    assert classifier.places == [tmp_path / "model"]
    assert "nothing was saved: -o FOLDER" in save_so_far(classifier, interruption, None, spared=False)
