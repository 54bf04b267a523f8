import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from gcnsl import InputError
from gcnsl.pictures import FORMATS, LITERAL_TEXT, check_picture, save_picture

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", [*FORMATS, ".PNG"])
def test_the_ending_names_the_format(tmp_path, kind) -> None:
    path = save_picture(Figure(), tmp_path / "new folder" / f"a{kind}")
    assert path.read_bytes().startswith(BEGINNINGS[kind.lower()])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_unknown_ending_is_refused() -> None:
    for name in ("a.bmp", "a", "png"):
        with pytest.raises(InputError, match=rf"plot\('{name}'\) must end in one of \.png, \.svg, \.pdf"):
            check_picture(name)


@pytest.mark.parametrize("text", ["$x_$", "$", r"\$a$", "$\\frac{"])
def test_dollar_signs_are_no_formulas(tmp_path, text) -> None:
    with mpl.rc_context(LITERAL_TEXT):
        figure = Figure()
        axes = figure.subplots()
        axes.set(title=text, xlabel=text)
        axes.set_xticks([0], [text])
        save_picture(figure, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").exists()
