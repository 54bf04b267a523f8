import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.training import TrainingSettings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, r"lr\(0.0\) must be > 0"),
        ({"lr": float("nan")}, r"lr\(nan\) must be finite and > 0"),
        ({"lr": "fast"}, r"lr\('fast'\) must be a number > 0"),
        ({"weight_decay": -1.0}, r"weight_decay\(-1.0\) must be >= 0"),
        ({"epochs": 0}, r"epochs\(0\) must be >= 1"),
        ({"patience": 2.5}, r"patience\(2.5\) must be a whole number >= 1"),
        ({"plateau_patience": True}, r"plateau_patience\(True\) must be a whole number >= 1"),
        ({"monitor": "f1"}, r"monitor\('f1'\) must be one of loss, accuracy, balanced-accuracy, macro-f1, roc-auc"),
        ({"class_weight": "heavy"}, r"class_weight\('heavy'\) must be none, balanced, or positive weights by class"),
        ({"optimizer": "lion"}, r"optimizer\('lion'\) must be one of adam, sgd"),
        ({"plateau_factor": 1.0}, r"plateau_factor\(1.0\) must be > 0 and < 1"),
    ],
)
def test_bad_settings_are_named_with_value_and_bound(options, message) -> None:
    with pytest.raises(InputError, match=message):
        TrainingSettings(**options)


def test_numbers_of_numpy_will_do() -> None:
    settings = TrainingSettings(epochs=np.int64(3), lr=np.float32(0.5))
    assert settings == TrainingSettings(epochs=3, lr=0.5)
    assert (type(settings.epochs), type(settings.lr)) == (int, float)


def test_weights_of_classes_are_one_text_whatever_they_are_given_as() -> None:
    given = ({"yes": 5, "no": 1.0}, "no=1, yes=5", '{"yes": 5, "no": 1}', '{"no": 1.0, "yes": 5.0}')
    assert {TrainingSettings(class_weight=each).class_weight for each in given} == {'{"no": 1.0, "yes": 5.0}'}
    assert TrainingSettings(class_weight="none") == TrainingSettings()
    assert hash(TrainingSettings(class_weight={"a": 2})) != hash(TrainingSettings())
