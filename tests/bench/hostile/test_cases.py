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


@pytest.mark.parametrize("judged", [judge, judge_apart])
@pytest.mark.parametrize("verdict", CASES)
def test_verdicts(judged, verdict: str) -> None:
    assert judged(CASES[verdict])[0] == verdict


def test_a_refusal_must_not_be_long() -> None:
    assert judge(Case("g", "short", lambda: talk("x")))[0] == "refused"
    assert judge(Case("g", "long", lambda: talk("xy")))[0] == "wordy"


def test_what_hangs_is_killed() -> None:
    began = time.perf_counter()
    assert judge_apart(Case("g", "sleeps", lambda: time.sleep(60), seconds=0.2))[0] == "hung"
    assert time.perf_counter() - began < 30


def test_what_dies_is_noticed() -> None:
    assert judge_apart(Case("g", "dies", lambda: os.kill(os.getpid(), signal.SIGKILL)))[0] == "died"


def test_the_summary_counts_every_case_and_shows_what_went_wrong(capsys) -> None:
    verdicts = run_cases([*CASES.values(), CASES["foreign"]], apart=False)
    assert isinstance(verdicts, Verdicts)
    assert (verdicts.total["foreign"], verdicts.total.total(), len(verdicts.wrong)) == (2, 6, 4)
    verdicts.show(Console(width=120))
    printed = capsys.readouterr().out
    assert "foreign: g: division: ZeroDivisionError" in printed
    assert "refused" in printed
