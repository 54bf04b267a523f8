"""The house: one direction of imports, and scripts that import what is there."""

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "gcnsl"
ROOMS = (
    "version",
    "lazy",
    "errors",
    "files",
    "checks",
    "options",
    "execution",
    "sparse",
    "pictures",
    "graph",
    "datasets",
    "spectral",
    "reconnection",
    "nn",
    "plain",
    "training",
    "storage",
    "methods",
    "runs",
    "auto",
    "estimator",
    "evaluation",
    "experiments",
    "cli",
)
"""A module imports only from its own room and from those before it."""
SCRIPTS = sorted(path for folder in ("bench", "tools") for path in (SRC.parents[1] / folder).rglob("*.py"))
MODULES = sorted(path for path in SRC.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from, anywhere in it: inside functions and for type checking too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "gcnsl" else [f"gcnsl.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("gcnsl.")}
        assert "gcnsl" not in names, f"{path.name} imports the whole package"
    return found


def test_every_room_is_listed() -> None:
    assert {room(path) for path in MODULES} == set(ROOMS)


def test_imports_go_one_way() -> None:
    for path in MODULES:
        allowed = ROOMS[: ROOMS.index(room(path)) + 1]
        assert imported(path) <= set(allowed), f"{path.relative_to(SRC)} imports from a later room"


def test_the_walk_of_train_has_no_step_back() -> None:
    text = (SRC.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = [
        SRC / name
        for name in re.findall(r"`([a-z]+/\w+\.py)`", text.partition("## The walk of")[2].partition("\nWithout")[0])
    ]
    modules = [f"gcnsl.{'.'.join(path.relative_to(SRC).with_suffix('').parts)}" for path in walk]
    assert len(walk) > 10
    for number, path in enumerate(walk):
        found = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        assert not found & set(modules[number + 1 :]), path.name


def test_what_a_script_imports_exists() -> None:
    for script in SCRIPTS:
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "gcnsl":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    found = hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}")
                    assert found, f"{script.name}: {alias.name}"
