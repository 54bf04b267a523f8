from dataclasses import replace

import numpy as np
import pytest

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.race import TimedRace
from gcnsl.auto.selection import COLUMNS, leaderboard, with_test

from .cases import fake_fit, small_problem

NAMES = ("gcn", "mlp", "sage", "linkx", "fsgnn")
PORTFOLIO = {name: Candidate(name, name) for name in NAMES}


@pytest.fixture
def race() -> TimedRace:
    """The first is complete, the second has one fold, the third failed, the fourth runs, the fifth has not begun."""
    problem = small_problem()
    fits = [fake_fit(problem, PORTFOLIO["gcn"], fold, skill=0.9, seconds=2.0) for fold in range(5)]
    fits.append(fake_fit(problem, PORTFOLIO["mlp"], 0, skill=0.4))
    it = TimedRace(problem, [*PORTFOLIO.values()], trials=0, seconds=10, processes=1, fits=fits)
    it.fail(PORTFOLIO["sage"], "failed: why")
    it.contenders[PORTFOLIO["linkx"]].is_running = True
    return it


def test_a_row_for_each_with_a_verdict(race) -> None:
    gcn, mlp = (race.contenders[PORTFOLIO[name]] for name in ("gcn", "mlp"))
    y = race.problem.graph.y[race.problem.validated(5)].numpy()
    table = leaderboard(race, 5, {gcn: 0.7, mlp: 0.3}, np.eye(3)[y])
    assert tuple(table.columns) == COLUMNS
    assert table["model"].iloc[0] == "ensemble"
    verdicts = table.set_index("model")["verdict"].to_dict()
    assert verdicts == {
        "ensemble": "2 models by their weights",
        "gcn": "70% of the ensemble",
        "mlp": "30% of the ensemble",
        "majority class": "for comparison",
        "sage": "failed: why",
        "linkx": "not finished in time",
        "fsgnn": "skipped: no time left",
    }
    rows = table.set_index("model")
    assert rows.loc["gcn", "train_seconds"] == 10.0
    assert rows.loc["ensemble", "train_seconds"] == 11.0
    assert rows.loc["gcn", ["validation", "first_fold"]].tolist() == [race.value(gcn, 5), race.value(gcn, 1)]
    assert np.isnan(rows.loc["mlp", "validation"])
    assert rows.loc["mlp", "first_fold"] == race.value(mlp, 1)
    assert rows.loc["ensemble", ["validation", "first_fold"]].tolist() == [1, 1]
    assert rows["weight"].sum() == 1
    assert rows["test"].isna().all()


def test_test_nodes_are_measured_at_the_end(race) -> None:
    gcn = race.contenders[PORTFOLIO["gcn"]]
    table = leaderboard(race, 5, {gcn: 1.0}, race.out_of_fold(gcn, 5))
    y = np.array([0, 1, 2, 0])
    tested = with_test(table, {"gcn": np.eye(3)[y], "mlp": np.eye(3)[[0, 0, 0, 0]]}, y).set_index("model")["test"]
    assert (tested["gcn"], tested["mlp"]) == (1.0, 0.5)
    assert np.isnan(tested["sage"])


def test_verdicts_on_those_that_were_dropped_cut_or_of_no_use(race) -> None:
    gcn, mlp, linkx, fsgnn = (race.contenders[PORTFOLIO[name]] for name in ("gcn", "mlp", "linkx", "fsgnn"))
    race.add(replace(fake_fit(race.problem, PORTFOLIO["linkx"], 0, skill=0.5, seconds=3.2), is_cut=True))
    race.add(fake_fit(race.problem, PORTFOLIO["fsgnn"], 0, skill=0.5))

    def verdicts(weights):
        return leaderboard(race, 1, weights, race.out_of_fold(gcn, 1)).set_index("model")["verdict"]

    assert verdicts({linkx: 0.5, fsgnn: 0.5})[["gcn", "mlp"]].tolist() == ["adds nothing", "dropped at fold 1/5"]
    assert verdicts({gcn: 0.5, mlp: 0.5})["linkx"] == "cut off after 3 s"
    race.fail(mlp.candidate, "failed: not enough memory")
    assert verdicts({gcn: 0.5, mlp: 0.5})["mlp"] == "50% of the ensemble, then failed: not enough memory"
