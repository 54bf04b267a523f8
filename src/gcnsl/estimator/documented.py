"""Docstrings that list hyper-parameters as they are declared, so that ``help()`` never disagrees with the code."""

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from gcnsl.auto import AUTO, AutoSettings
from gcnsl.methods import Method
from gcnsl.options import Option
from gcnsl.training import StageSettings, TrainingSettings

Documented = TypeVar("Documented", bound=type)
_WIDTH = 116


def option_lines(methods: Mapping[str, Method]) -> str:
    """The options of several methods: those of training once, then those of each model, and last those of auto."""
    every, network = StageSettings.described(), TrainingSettings.described()
    parts = ["Options of every method's training:\n", options_of(every)]
    parts += ["\nFurther options of the training of networks:\n", options_of(network[len(every) :])]
    for name, method in methods.items():
        own = [option for option in method.described() if option.name in method.config.names()]
        trained, defaults = method.training.described(), method.options()
        other = ", ".join(f"{o.name}={defaults[o.name]}" for o in trained if defaults[o.name] != o.default)
        parts += [f"\nOptions of ``{name}``{f' (trained with {other})' if other else ''}:\n", options_of(own)]
    parts += [f"\nOptions of ``{AUTO}``:\n", options_of(AutoSettings.described())]
    return "\n".join(parts)


def with_options_of(lines: str) -> Callable[[Documented], Documented]:
    """Add lines, such as those of :func:`option_lines`, to the end of a class's docstring."""

    def document(owner: Documented) -> Documented:
        owner.__doc__ = f"{(owner.__doc__ or '').rstrip()}\n\n{textwrap.indent(lines, '    ')}\n    "
        return owner

    return document


def options_of(options: Iterable[Option]) -> str:
    """A list of options: name, range, default, meaning."""
    lines = []
    for option in options:
        default = repr(option.default) if isinstance(option.default, str) else str(option.default)
        text = f"{option.name} ({option.range}; default {default}): {option.meaning}"
        lines += textwrap.wrap(text, _WIDTH - 8, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines)
