import pytest

from gcnsl.plain.plain_config import BoostedTreesConfig, LabelPropagationConfig, LogisticConfig, TwinsConfig


@pytest.mark.parametrize("config", [TwinsConfig, LogisticConfig, BoostedTreesConfig])
def test_directions_are_used_unless_the_graph_is_seen_as_undirected(config) -> None:
    assert config().uses == {"weights", "directions"}
    assert config(direction="undirected").uses == {"weights"}


def test_models_that_vote_do_nothing_to_the_features() -> None:
    assert LabelPropagationConfig.names() == ["alpha"]
    assert TwinsConfig.names() == ["direction"]
    assert (TwinsConfig().feature_norm, TwinsConfig().standardize) == ("none", "never")
