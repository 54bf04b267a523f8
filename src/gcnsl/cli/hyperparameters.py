"""Hyper-parameters on the command line: where they start from, and what ``--set`` makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.methods import Method


def read_settings(given: Iterable[str] | None) -> dict[str, str]:
    """Texts ``key=value`` as a table."""
    settings = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--set {text!r} is no setting: write KEY=VALUE, for example --set epochs=200")
        settings[key.strip()] = value.strip()
    return settings


def method_on(name: str, graph: str | None, *, searched: bool) -> Method:
    """A method with its hyper-parameters for a graph.

    Args:
        name: The method.
        graph: What the command was given for a graph: the paper's graphs have hyper-parameters of their own.
        searched: Whether to take those that were searched for, where there are any.
    """
    from gcnsl.datasets import NAMES
    from gcnsl.experiments.hyperparameters import options_for
    from gcnsl.methods import find_method

    method = find_method(name)
    if graph not in NAMES:
        return method
    return method.with_options(**options_for(name, graph, paper_hparams=not searched))


def classifier_options(graph: str | None, settings: Mapping[str, str], *, searched: bool) -> dict[str, Any]:
    """The classifier's arguments for a graph, with what ``--set`` says."""
    from gcnsl.estimator import GCNSLClassifier

    method = method_on("gcn-sl-cc", graph, searched=searched)
    known = [name for name in method.options() if name in GCNSLClassifier().get_params()]
    unknown = settings.keys() - set(known)
    if unknown:
        raise InputError(f"--set {', '.join(sorted(unknown))}: there is no such option; there are {', '.join(known)}")
    options = method.with_options(**settings).options()
    return {name: options[name] for name in known}


def methods_with(
    names: Iterable[str], graph: str | None, settings: Mapping[str, str], *, searched: bool
) -> dict[str, Method]:
    """Methods by name, each with the settings ``key`` that are for all and those ``name.key`` that are for it."""
    from gcnsl.methods import ALIASES

    methods = {}
    for given in names:
        name = ALIASES.get(given, given)
        methods[name] = method_on(name, graph, searched=searched)
    options: dict[str, dict[str, str]] = {name: {} for name in methods}
    for key, value in settings.items():
        given, dot, option = key.rpartition(".")
        name = ALIASES.get(given, given)
        if dot and name not in methods:
            raise InputError(f"--set {key}: {given!r} is not compared; the models are {', '.join(methods)}")
        for one in [name] if dot else methods:
            options[one][option] = value
    return {name: method.with_options(**options[name]) for name, method in methods.items()}
