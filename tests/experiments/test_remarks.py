import pytest

from gcnsl.experiments.remarks import on_duplicates, on_runs

FULL, FILTERED = "squirrel, directed", "squirrel-filtered, directed"
MEANS = {
    ("gcn", FULL): 40.0,
    ("twins", FULL): 74.7,
    ("gcn-sl-plus", FULL): 76.0,
    ("gcn-sl-plus -structure", FULL): 77.0,
    ("gcn", FILTERED): 38.0,
    ("twins", FILTERED): 31.2,
    ("gcn-sl-plus", FILTERED): 41.6,
}


def test_how_much_of_a_lead_duplicates_explain() -> None:
    assert list(on_duplicates(MEANS)) == [
        "Squirrel (directed): GCN-SL+ is best with 76.0. Twins, which only copies the class of the training node with "
        "the most similar neighbours, reaches 74.7, and 31.2 without duplicates. The lead over GCN is 36.0 points, and "
        "3.6 without duplicates: these explain about 90% of it."
    ]


@pytest.mark.parametrize(("filtered", "share"), [(80.0, "0%"), (38.0, "100%"), (30.0, "100%")])
def test_a_share_is_between_none_and_all(filtered, share) -> None:
    (told,) = on_duplicates(MEANS | {("gcn-sl-plus", FILTERED): filtered})
    assert told.endswith(f"these explain about {share} of it.")


def test_without_a_lead_there_is_nothing_to_explain() -> None:
    (told,) = on_duplicates(MEANS | {("gcn", FULL): 78.0})
    assert told.startswith("Squirrel (directed): GCN is best with 78.0.")
    assert "lead" not in told


@pytest.mark.parametrize("key", MEANS.keys() - {("gcn-sl-plus", FULL), ("gcn-sl-plus -structure", FULL)})
def test_what_is_missing_is_said(key) -> None:
    (told,) = on_duplicates(MEANS | {key: None})
    assert told.startswith("What duplicates explain on Squirrel (directed) can't be said:")
    assert told.endswith(" is not run yet.")


def test_other_graphs_have_no_duplicates_to_speak_of() -> None:
    assert list(on_duplicates({("gcn", "texas"): 60.0, ("gcn", FULL): 40.0})) == []


def test_budgets() -> None:
    trials = {("gcn", "texas"): 16, ("twins", "texas"): 3, ("twins", "cora"): 3, ("mlp", "texas"): 16}
    means = dict.fromkeys(trials, 80.0)
    few = "; methods with fewer settings have tried all of them: Twins 3."
    best = (
        "Hyper-parameters are the best of 16 trials for each method and graph, judged by validation nodes of 2 splits"
    )
    assert list(on_runs(trials, means)) == [best + few]
    unfinished = means | {("mlp", "texas"): None}
    assert list(on_runs(trials, unfinished)) == [best + few, "1 of 4 cells are not run yet."]
    (equal,) = on_runs({("gcn", "texas"): 16}, {("gcn", "texas"): 80.0})
    assert equal == f"{best}."
    told = list(on_runs({("gcn", FULL): 16}, {("gcn", FULL): 40.0}))
    assert told == [f"{best}.", "Methods that do not use directions have the same runs with and without them."]
