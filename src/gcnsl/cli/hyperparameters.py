"""Hyper-parameters on the command line: where they start from, and what ``--set`` makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.methods import Method


def read_options(given: Iterable[str] | None) -> dict[str, str]:
    """Texts ``key=value`` as a table."""
    options = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--set {text!r} is no setting: write KEY=VALUE, for example --set epochs=200")
        options[key.strip()] = value.strip()
    return options


@dataclass(frozen=True)
class Start:
    """Where hyper-parameters start from.

    Attributes:
        graph: What the command was given for a graph. On the paper's graphs GCN-SL has the paper's values.
        searched: Take what was searched for on this graph in place of them, as far as the package has it.
        settings: A file that ``gcnsl search`` wrote, which goes before all others.
    """

    graph: str | None = None
    searched: bool = False
    settings: Path | None = None

    def method(self, name: str) -> Method:
        """A method with its hyper-parameters."""
        from gcnsl.datasets import is_known
        from gcnsl.experiments import paper
        from gcnsl.experiments.hyperparameters import options_for, read_settings
        from gcnsl.methods import find_method

        method = find_method(name)
        if self.searched and self.graph is not None and is_known(self.graph):
            method = method.with_options(**options_for(name, self.graph))
        elif name.startswith("gcn-sl") and self.graph in paper.DATASETS:
            method = method.with_options(**paper.hyperparameters(self.graph))
        if self.settings is None:
            return method
        if not self.settings.is_file():
            raise InputError(f"--settings {str(self.settings)!r}: there is no such file")
        return method.with_options(**read_settings(self.settings).get(name, {}).get("options", {}))


def classifier_options(start: Start, given: Mapping[str, str]) -> dict[str, Any]:
    """The classifier's arguments, with what ``--set`` says."""
    from gcnsl.estimator import GCNSLClassifier

    method = start.method("gcn-sl-cc")
    known = [name for name in method.options() if name in GCNSLClassifier().get_params()]
    unknown = given.keys() - set(known)
    if unknown:
        raise InputError(f"--set {', '.join(sorted(unknown))}: there is no such option; there are {', '.join(known)}")
    options = method.with_options(**given).options()
    return {name: options[name] for name in known}


def methods_with(names: Iterable[str], start: Start, given: Mapping[str, str]) -> dict[str, Method]:
    """Methods by name, each with the options ``key`` that are given to all and those ``name.key`` that are for it."""
    from gcnsl.methods import ALIASES

    methods = {ALIASES.get(name, name): start.method(ALIASES.get(name, name)) for name in names}
    options: dict[str, dict[str, str]] = {name: {} for name in methods}
    for key, value in given.items():
        whose, dot, option = key.rpartition(".")
        name = ALIASES.get(whose, whose)
        if dot and name not in methods:
            raise InputError(f"--set {key}: {whose!r} is not compared; the models are {', '.join(methods)}")
        for one in [name] if dot else methods:
            options[one][option] = value
    return {name: method.with_options(**options[name]) for name, method in methods.items()}
