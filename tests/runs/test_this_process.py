import os
from collections import deque

import pytest

from gcnsl.runs.this_process import ThisProcess


def test_runs_are_carried_out_here_one_after_the_other() -> None:
    with ThisProcess() as executor:
        assert executor.slots == executor.ready == 1
        found = list(executor.each(lambda item: (item, os.getpid()), deque("abc")))
    assert found == [(item, (item, os.getpid())) for item in "abc"]


def test_errors_of_the_function_are_raised() -> None:
    with ThisProcess() as executor, pytest.raises(ZeroDivisionError):
        list(executor.each(lambda item: 1 / item, deque([0, 1])))
