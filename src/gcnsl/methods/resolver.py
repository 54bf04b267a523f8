"""Where the hyper-parameters of a method come from, for every command.

In order of precedence: options given explicitly, a settings file, the settings published for a benchmark of the
literature (``published/BENCHMARK.toml`` in this package), and the defaults of the method. A settings file, such as
``gcnsl search`` writes, has two tables per method: ``options``, and ``search``, which says how they were found::

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

from gcnsl.checks import check_choice
from gcnsl.errors import InputError
from gcnsl.files import atomic_write
from gcnsl.methods.registry import Method, find_method
from gcnsl.options import NONE, parse_toml
from gcnsl.training.metrics import METRICS

PathLike = str | os.PathLike[str]
Tables = dict[str, dict[str, dict[str, Any]]]
"""By method, then by ``options`` and ``search``."""


def resolve(
    name: str,
    *,
    benchmark: str | None = None,
    settings: PathLike | None = None,
    options: Mapping[str, Any] | None = None,
    metric: str | None = None,
) -> Method:
    """A method, by name or alias, with its hyper-parameters.

    Args:
        benchmark: Name of the graph if it is a benchmark of the literature.
        settings: A settings file, which must have settings for this method.
        options: Explicit values, by name.
        metric: What chooses the best epoch, unless the options name a ``monitor``; ``None`` leaves it to the method.
    """
    method = find_method(name)
    if benchmark is not None:
        method = _with_file(method, published_path(benchmark))
    if settings is not None:
        if method.name not in (tables := read_settings(settings)):
            raise InputError(
                f"{settings} has no settings for {method.name}, only for {', '.join(tables) or 'no method'}: "
                f"`gcnsl search --method {method.name}` finds some"
            )
        method = _with_file(method, Path(settings))
    if metric is not None:
        method = method.with_options(monitor=check_choice("metric", metric, METRICS))
    return method.with_options(**(options or {}))


def published_path(benchmark: str) -> Path:
    """The file with the published settings of a benchmark; not every benchmark has one."""
    return Path(str(resources.files("gcnsl.methods") / "published")) / f"{benchmark}.toml"


def read_settings(path: PathLike) -> Tables:
    """The tables of a settings file, by the names of the methods."""
    if not Path(path).is_file():
        raise InputError(f"settings({os.fspath(path)!r}): there is no such file; `gcnsl search` writes one")
    try:
        document = parse_toml(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a TOML file ({error}): fix it, or delete it to use defaults") from error
    tables: Tables = {}
    for name, parts in document.items():
        try:
            method = find_method(name).name
        except InputError as error:
            raise InputError(f"{path}, table [{name}]: {error}") from error
        if not isinstance(parts, dict) or not isinstance(parts.get("options"), dict):
            raise InputError(f"{path} has no table [{name}.options]: add it with the options, or remove {name}")
        search = parts.get("search")
        tables[method] = {"options": parts["options"], "search": search if isinstance(search, dict) else {}}
    return tables


def write_settings(path: PathLike, method: str, options: Mapping[str, Any], search: Mapping[str, Any]) -> None:
    """Write the options of a method, and how they were found, to a file; the settings of other methods are kept."""
    before = read_settings(path) if Path(path).is_file() else {}
    tables = {**before, method: {"options": dict(options), "search": dict(search)}}
    lines = [f"# Hyper-parameters on {Path(path).stem}, chosen on validation nodes by `gcnsl search`.", ""]
    for name in sorted(tables):
        for part, values in tables[name].items():
            # plain values are written as in JSON, except for None, which TOML does not have
            texts = {
                key: json.dumps(NONE if value is None else value, ensure_ascii=False) for key, value in values.items()
            }
            lines += [f"[{name}.{part}]", *(f"{key} = {text}" for key, text in texts.items()), ""]
    atomic_write(path, "\n".join(lines))


def _with_file(method: Method, path: Path) -> Method:
    """The method with the options that a file has for it, if the file exists."""
    tables = read_settings(path) if path.is_file() else {}
    try:
        return method.with_options(**tables.get(method.name, {}).get("options", {}))
    except InputError as error:
        raise InputError(f"{path}, table [{method.name}.options]: {error}") from error
