import typing

import typer

from gcnsl.cli import shared_options


def test_every_option_says_what_it_does_in_a_sentence() -> None:
    found = {name: value for name, value in vars(shared_options).items() if name.endswith(("Option", "Argument"))}
    assert len(found) > 8
    for name, annotation in found.items():
        (option,) = [part for part in typing.get_args(annotation) if isinstance(part, typer.models.ParameterInfo)]
        assert option.help, name
        assert option.help.rstrip().endswith("."), name
