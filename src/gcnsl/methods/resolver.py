"""Which hyper-parameters a method has: the one place that decides, for every command.

What is said explicitly goes before a settings file, that before what is published for a benchmark of the literature,
and that before the method's own defaults. Published are the files ``published/BENCHMARK.toml`` of this package; they and
the files that ``gcnsl search`` writes have two tables for each method: ``options``, and ``search``, which says where
they come from::

    [gcn-sl-cc.options]
    lr = 0.005
    epsilon = 0.99

    [gcn-sl-cc.search]
    validation_accuracy = 0.8871
    trials = 100
"""

import json
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from gcnsl.errors import InputError
from gcnsl.files import atomic_write
from gcnsl.methods.registry import Method, find_method
from gcnsl.options import NONE, tomllib

PathLike = str | os.PathLike[str]
Tables = dict[str, dict[str, dict[str, Any]]]
"""By method, then ``options`` and ``search``."""


def resolve(
    name: str,
    *,
    benchmark: str | None = None,
    settings: PathLike | None = None,
    options: Mapping[str, Any] | None = None,
) -> Method:
    """A method with its hyper-parameters.

    Args:
        name: Of the registry, or an alias.
        benchmark: The graph of the literature that it is for; ``None`` for any other graph, whatever it is called.
        settings: A file with settings, which must have some for this method; or a folder with a file for each benchmark,
            which need not.
        options: What goes before all else.

    Raises:
        InputError: If the file has nothing for this method, or an option can't be used.
    """
    method = find_method(name)
    if benchmark is not None:
        method = _with_file(method, published_path(benchmark))
    if settings is not None and Path(settings).is_dir():
        method = _with_file(method, Path(settings) / f"{benchmark}.toml")
    elif settings is not None:
        tables = read_settings(settings)
        if method.name not in tables:
            raise InputError(
                f"{settings} has no settings for {method.name}, only for {', '.join(tables) or 'no method'}: "
                f"`gcnsl search --method {method.name}` finds some"
            )
        method = _with_file(method, Path(settings))
    return method.with_options(**(options or {}))


def published_path(benchmark: str) -> Path:
    """The file with the settings that are published for a benchmark; not every benchmark has one."""
    return Path(str(resources.files("gcnsl.methods") / "published")) / f"{benchmark}.toml"


def read_settings(path: PathLike) -> Tables:
    """The tables of a settings file."""
    if not Path(path).is_file():
        raise InputError(f"settings({os.fspath(path)!r}): there is no such file; `gcnsl search` writes one")
    try:
        tables: Tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not a TOML file ({error}): fix it, or delete it to use defaults") from error
    for name, parts in tables.items():
        find_method(name)
        if not isinstance(parts, dict) or not isinstance(parts.get("options"), dict):
            raise InputError(f"{path} has no table [{name}.options]: name the options there, or remove {name}")
    return tables


def settings_like(method: str, path: PathLike) -> list[dict[str, Any]]:
    """What a file has for this method and for variants of the same model, such as GCN-SL's other merge."""
    model = type(find_method(method).config)
    tables = read_settings(path) if Path(path).is_file() else {}
    return [parts["options"] for name, parts in tables.items() if type(find_method(name).config) is model]


def write_settings(path: PathLike, method: str, options: Mapping[str, Any], search: Mapping[str, Any]) -> None:
    """Put a method's options, and how they were found, into a file; those of other methods stay."""
    before = read_settings(path) if Path(path).is_file() else {}
    tables = {**before, method: {"options": dict(options), "search": dict(search)}}
    lines = [f"# Hyper-parameters on {Path(path).stem}, chosen on validation nodes by `gcnsl search`.", ""]
    for name in sorted(tables):
        for part, values in tables[name].items():
            lines += [f"[{name}.{part}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    atomic_write(path, "\n".join(lines))


def _with_file(method: Method, path: Path) -> Method:
    """The method with what a file has for it, if there is such a file."""
    tables = read_settings(path) if path.is_file() else {}
    try:
        return method.with_options(**tables.get(method.name, {}).get("options", {}))
    except InputError as error:
        raise InputError(f"{path}, table [{method.name}.options]: {error}") from error


def _toml(value: Any) -> str:
    """A value as TOML writes it, which is how JSON does, but for ``None``: TOML has no word for it, so ours is used."""
    return json.dumps(NONE if value is None else value)
