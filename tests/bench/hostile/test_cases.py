import os
import signal
import time

import pytest
from bench.hostile.cases import Case, Verdicts, judge, judge_apart, must_be_refused, run_cases
from rich.console import Console

from gcnsl.errors import InputError


def refuse(message: str) -> None:
    raise InputError(message)


class WordyError(InputError):
    """An error that does not keep to one line, as the others do."""

    def __str__(self) -> str:
        return self.args[0] * 200


def talk(text: str) -> None:
    raise WordyError(text)


CASES = {
    "worked": Case("g", "fine", lambda: 3),
    "refused": Case("g", "refused", lambda: refuse("x(3) must be 2"), must_be_refused),
    "accepted": Case("g", "wrong", lambda: 3, must_be_refused),
    "foreign": Case("g", "division", lambda: 1 / 0),
    "wordy": Case("g", "two lines", lambda: talk("\n")),
}


HUNG = Case("g", "sleeps", lambda: time.sleep(60), seconds=0.2)
DIED = Case("g", "dies", lambda: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.parametrize("judged", [lambda cases: map(judge, cases), judge_apart])
def test_verdicts(judged) -> None:
    assert [verdict for verdict, _ in judged([*CASES.values()])] == [*CASES]


def test_a_refusal_must_not_be_long() -> None:
    assert judge(Case("g", "short", lambda: talk("x")))[0] == "refused"
    assert judge(Case("g", "long", lambda: talk("xy")))[0] == "wordy"


@pytest.mark.parametrize("together", [1, 2, 100])
def test_what_hangs_or_dies_is_noticed_and_spoils_no_other(monkeypatch, together: int) -> None:
    monkeypatch.setattr("bench.hostile.cases.CASES_IN_A_PROCESS", together)
    began = time.perf_counter()
    verdicts = [verdict for verdict, _ in judge_apart([HUNG, CASES["worked"], DIED, DIED, CASES["refused"]])]
    assert verdicts == ["hung", "worked", "died", "died", "refused"]
    assert time.perf_counter() - began < 30


def test_the_summary_counts_every_case_and_shows_what_went_wrong(capsys) -> None:
    verdicts = run_cases([*CASES.values(), CASES["foreign"]], apart=False)
    assert isinstance(verdicts, Verdicts)
    assert (verdicts.total["foreign"], verdicts.total.total(), len(verdicts.wrong)) == (2, 6, 4)
    verdicts.show(Console(width=120))
    printed = capsys.readouterr().out
    assert "foreign: g: division: ZeroDivisionError" in printed
    assert "refused" in printed
