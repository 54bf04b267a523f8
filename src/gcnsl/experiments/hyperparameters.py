"""Which hyper-parameters a method has on a graph: searched ones from a readable file, else its paper's, else defaults.

A file ``DATASET.toml`` has two tables for each method that was searched for: ``options``, which experiments use, and
``search``, which says where they come from::

    [gcn-sl-cc.options]
    lr = 0.005
    epsilon = 0.99

    [gcn-sl-cc.search]
    validation_accuracy = 0.8871
    trials = 100
"""

import json
import os
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from gcnsl.errors import InputError
from gcnsl.experiments import literature, paper
from gcnsl.files import atomic_write
from gcnsl.methods import find_method

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Folder = str | os.PathLike[str] | None


def settings_path(dataset: str, folder: Folder = None) -> Path:
    """The file with a graph's settings, in a folder or among those that are part of the package."""
    return Path(folder or str(resources.files("gcnsl.experiments") / "settings")) / f"{dataset}.toml"


def read_settings(path: str | os.PathLike[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """By method, then ``options`` and ``search``; empty where there is no file."""
    if not Path(path).is_file():
        return {}
    try:
        tables: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no TOML file ({error}): mend it, or delete it to use defaults") from error
    return tables


def settings_like(method: str, path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What a file has for this method and for variants of the same model, such as GCN-SL's other merge."""
    model = type(find_method(method).config)
    tables = read_settings(path)
    return [tables[name].get("options", {}) for name in tables if type(find_method(name).config) is model]


def write_settings(
    path: str | os.PathLike[str], method: str, options: Mapping[str, Any], search: Mapping[str, Any]
) -> None:
    """Put a method's options, and how they were found, into a file; those of other methods stay."""
    tables = {**read_settings(path), method: {"options": dict(options), "search": dict(search)}}
    lines = [f"# Hyper-parameters on {Path(path).stem}, chosen on validation nodes by `gcnsl search`.", ""]
    for name in sorted(tables):
        for part, values in tables[name].items():
            lines += [f"[{name}.{part}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    atomic_write(path, "\n".join(lines))


def _toml(value: Any) -> str:
    """A value as TOML has it, which is JSON's way but for nothing: that is a text here, which options read so."""
    return '"none"' if value is None else json.dumps(value)


def options_for(method: str, dataset: str, *, paper_hparams: bool = False, folder: Folder = None) -> dict[str, Any]:
    """All options of a method on a graph.

    Args:
        method: A name of :data:`gcnsl.methods.METHODS`.
        dataset: The graph.
        paper_hparams: Whether to leave GCN-SL with the paper's own values where it has some.
        folder: Where the settings files are, if not among those that are part of the package.
    """
    chosen = find_method(method).with_options(**literature.hyperparameters(method, dataset))
    has_paper = method.startswith("gcn-sl") and dataset in paper.DATASETS
    if has_paper:
        chosen = chosen.with_options(**paper.hyperparameters(dataset))
    path = settings_path(dataset, folder)
    searched = {} if paper_hparams and has_paper else read_settings(path).get(method, {}).get("options", {})
    try:
        return chosen.with_options(**searched).options()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
