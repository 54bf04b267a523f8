import json

import pytest

from gcnsl import InputError
from gcnsl.experiments.spec import RunSpec, as_options

from .cases import spec


def test_a_key_names_the_whole_specification() -> None:
    keys = {
        spec(0).key,
        spec(1).key,
        spec(seed=1).key,
        spec(method="mlp").key,
        spec(dataset="cora").key,
        spec(split="geom-gcn").key,
        spec(curves=True).key,
        spec(task="features").key,
        spec(task="search").key,
        spec(directed=True).key,
        spec(metric="roc-auc").key,
        spec(options=as_options({"lr": 0.02, "plateau_factor": None, "rounds": 1})).key,
        spec(options=as_options({"lr": 0.01})).key,
    }
    assert len(keys) == 13
    assert spec(options=as_options({"rounds": 1, "plateau_factor": None, "lr": 0.01})).key == spec().key
    several = spec(options=as_options({"powers": (0, 1, 2)}))
    for one in (spec(), several, spec(directed=True, metric="roc-auc")):
        assert RunSpec.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert as_options({"powers": [0, 1, 2]}) == several.options
    assert spec(3).group == spec(5).group
    assert spec(3).train_seed == 45


def test_keys_do_not_change_between_versions() -> None:
    assert spec().key == "df25f58b757f0cd10d378cd76146f362"


def test_an_option_that_came_later_changes_no_key_unless_it_is_used() -> None:
    assert spec().with_defaults({"class_weight": None}).key == spec().key
    assert spec().with_defaults({"class_weight": "balanced"}).key != spec().key
    assert spec().with_defaults({"use_spectral": True}).key == spec().key
    assert spec().with_defaults({"use_spectral": False}).key != spec().key
    plain = {"residual": False, "norm": "none", "drop_features": True}
    assert spec(method="gcn").with_defaults(plain).key == spec(method="gcn").key
    for later in ({"residual": True}, {"norm": "batch"}, {"drop_features": False}):
        assert spec(method="gcn").with_defaults(plain | later).key != spec(method="gcn").key


def test_a_field_that_came_later_is_not_written_unless_it_is_used() -> None:
    assert not {"directed", "metric"} & spec().to_dict().keys()
    assert spec(directed=True, metric="roc-auc").to_dict().items() >= {"directed": True, "metric": "roc-auc"}.items()


def test_the_accuracy_of_test_nodes_is_called_test() -> None:
    assert [spec(metric=metric).test_score for metric in ("accuracy", "roc-auc")] == ["test", "test_roc_auc"]


def test_an_option_that_came_later_has_its_default_in_earlier_runs() -> None:
    later = spec().with_defaults({"lr": 0.5, "new": True})
    assert dict(later.options) == {"lr": 0.01, "new": True, "plateau_factor": None, "rounds": 1}


def test_a_renamed_option_changes_no_key() -> None:
    earlier = spec(method="mixhop", options=as_options({"hidden_channels": 64, "lr": 0.5}))
    later = spec(method="mixhop", options=as_options({"power_channels": 64, "lr": 0.5}))
    assert RunSpec.from_dict(earlier.to_dict()) == RunSpec.from_dict(later.to_dict()) == later
    assert later.key == earlier.key
    other = spec(method="gcn", options=as_options({"hidden_channels": 64}))
    assert RunSpec.from_dict(other.to_dict()) == other


def test_a_specification_of_another_version_is_refused() -> None:
    with pytest.raises(InputError, match="unknown field colour"):
        RunSpec.from_dict(spec().to_dict() | {"colour": "red"})
    with pytest.raises(InputError, match=r"search_trials\(None\) must be a whole number >= 1"):
        RunSpec.from_dict(spec().to_dict() | {"task": "search"})
