import pytest

from gcnsl import load
from gcnsl.experiments import beyond
from gcnsl.experiments.beyond import FILTERED, OTHERS, PARTS, PLACES, WHOLE, WIKIPEDIA, Place
from gcnsl.experiments.result_store import RunResult
from gcnsl.methods import METHODS

pytestmark = pytest.mark.usefixtures("all_methods")
SQUIRREL = Place("squirrel", "geom-gcn", directed=True)


def search(name: str, place: Place = SQUIRREL, **fixed):
    return beyond.search_spec(name, place, seed=3, trials=5, **fixed)


def test_columns_have_names_of_their_own() -> None:
    columns = [place.column for place in PLACES]
    assert len(set(columns)) == len(columns) == 15
    assert {"squirrel", "squirrel, directed", "minesweeper, ROC-AUC", "debian"} < set(columns)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.column)
def test_every_place_can_be_loaded(place, data_root) -> None:
    data = load(place.dataset, split=place.split, directed=place.directed, root=data_root)
    assert ("arc_index" in data) is place.directed
    assert data.test_mask.shape == (data.num_nodes, 10)


def test_places_of_a_graph() -> None:
    assert [place.directed for place in beyond.places_of("squirrel")] == [True, False]
    assert beyond.places_of("cornell") == [Place("cornell", "geom-gcn")]
    assert beyond.places_of("twitch-ptbr") == [Place("twitch-ptbr", "random")]
    assert beyond.places_of("synthetic-h0.3") == [Place("synthetic-h0.3", "random")]


def test_the_graphs_without_duplicates_are_those_of_the_graphs_with_them() -> None:
    pairs = zip(WIKIPEDIA, FILTERED, strict=True)
    assert all(filtered.dataset == f"{full.dataset}-filtered" for full, filtered in pairs)


def test_parts_are_taken_away_on_five_graphs_and_directions_where_there_are_some() -> None:
    rows = {place.column: dict(beyond.parts_of(WHOLE, place)) for place in PLACES}
    assert [column for column, parts in rows.items() if parts] == [place.column for place in (*WIKIPEDIA, *OTHERS)]
    assert PARTS.keys() - rows["cora"].keys() == {f"{WHOLE} -directions"}
    assert rows["squirrel, directed"] == PARTS
    assert dict(beyond.parts_of("mlp", SQUIRREL)) == {}


def test_a_search_begins_with_the_defaults_and_not_with_published_settings() -> None:
    options = dict(search("gcn-sl-cc", Place("texas", "geom-gcn")).options)
    assert options == METHODS["gcn-sl-cc"].options() | {"search_trials": 5, "search_splits": 2}


def test_what_is_fixed_is_not_searched_for() -> None:
    assert beyond.fixed_options(search(WHOLE)) == []
    for part in PARTS.values():
        spec = search(WHOLE, **part)
        assert beyond.fixed_options(spec) == [*part]
        assert beyond.searched_method(spec) == METHODS[WHOLE].with_options(**part)
        assert spec.key != search(WHOLE).key


def test_directions_are_for_methods_that_use_them() -> None:
    assert search(WHOLE).directed
    assert search("mlp") == search("mlp", SQUIRREL._replace(directed=False))


def test_the_metric_chooses_the_epoch_too() -> None:
    spec = search("mlp", Place("minesweeper", "stored", metric="roc-auc"))
    assert (spec.metric, dict(spec.options)["monitor"]) == ("roc-auc", "roc-auc")
    assert (search("mlp").metric, dict(search("mlp").options)["monitor"]) == ("accuracy", "loss")


def test_runs_have_what_was_found() -> None:
    spec = search(WHOLE, contrast=0.0)
    done = RunResult(spec, "ok", {"options": {"lr": 0.02}, "trials": 5})
    runs = beyond.runs_after(done, 12)
    assert [run.run for run in runs] == list(range(10)), "there are ten geom-gcn splits"
    assert dict(runs[0].options) == METHODS[WHOLE].options() | {"contrast": 0.0, "lr": 0.02}
    assert {(run.task, run.directed, run.seed) for run in runs} == {("train", True, 3)}
    random = search("mlp", Place("debian", "random"))
    assert len(beyond.runs_after(RunResult(random, "ok", {"options": {}}), 12)) == 12
    assert beyond.runs_after(RunResult(spec, "failed"), 10) == ()
