import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_python_examples_run_and_print_what_they_say(example: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(README), "exec"), {})
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", example, flags=re.MULTILINE)
    assert printed.getvalue().splitlines() == promised


def test_there_are_examples() -> None:
    assert EXAMPLES
