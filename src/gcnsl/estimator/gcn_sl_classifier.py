"""GCNSLClassifier: GCN-SL with its options by name."""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any, get_type_hints

from gcnsl.errors import InputError
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.methods import METHODS
from gcnsl.nn.config import GCNSLConfig
from gcnsl.options import described_lines
from gcnsl.training import TrainingSettings

_BY_MERGE = {"concat": "gcn-sl-cc", "average": "gcn-sl-av"}
_OPTIONS = METHODS["gcn-sl-cc"].options()
_KINDS = get_type_hints(GCNSLConfig) | get_type_hints(TrainingSettings)
_PARAMETERS = {
    name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_KINDS[name])
    for name, default in _OPTIONS.items()
} | dict(inspect.signature(NodeClassifier, eval_str=True).parameters)
_SIGNATURE = inspect.Signature([each for name, each in _PARAMETERS.items() if name not in ("method", "options")])
"""The options as they are declared, and what every method has."""
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


class GCNSLClassifier(NodeClassifier):
    """Classify the nodes of a graph with GCN-SL, from the labels of some of them.

    The same as :class:`gcnsl.NodeClassifier` with ``method="gcn-sl"``, whose arguments and attributes it has, but with
    GCN-SL's options as arguments of their own.
    """

    def __init__(self, **parameters: Any) -> None:
        given = _SIGNATURE.bind(**parameters)
        given.apply_defaults()
        self.__dict__.update(given.arguments)

    __init__.__signature__ = _SIGNATURE.replace(parameters=[_SELF, *_SIGNATURE.parameters.values()])  # type: ignore[attr-defined]

    @property
    def options(self) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return {name: getattr(self, name) for name in _OPTIONS}

    @options.setter
    def options(self, options: dict[str, Any]) -> None:
        self.__dict__.update(options)

    @property
    def method(self) -> str:
        """``"gcn-sl-cc"`` or ``"gcn-sl-av"``, by ``merge``."""
        GCNSLConfig.check(merge=self.merge)
        return _BY_MERGE[self.merge]

    @method.setter
    def method(self, name: str) -> None:
        if name not in _BY_MERGE.values():
            raise InputError(f"the model is of {name}, not of GCN-SL: load it with NodeClassifier")


_LINES = indent(described_lines(METHODS["gcn-sl-cc"].described()), "    ")
GCNSLClassifier.__doc__ = f"{GCNSLClassifier.__doc__}\n    Options:\n\n{_LINES}\n    "
