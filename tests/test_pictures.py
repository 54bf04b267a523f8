import matplotlib as mpl
import pytest
from jinja2 import DictLoader
from matplotlib.figure import Figure

from gcnsl import InputError
from gcnsl.pictures import FORMATS, check_picture, find_template, save_picture, text_style

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
    with mpl.rc_context(text_style()):
        figure = Figure()
        axes = figure.subplots()
        axes.set(title=text, xlabel=text)
        axes.set_xticks([0], [text])
        save_picture(figure, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_characters_that_no_font_has_are_drawn_without_a_word(tmp_path, kind, caplog, recwarn) -> None:
    with mpl.rc_context(text_style()):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.set(title="東京 😀 \x07 \t عربي हिन्दी", xlabel="naïve")
        axes.set_xticks([0], ["🦊"])
        assert save_picture(figure, tmp_path / f"p{kind}").stat().st_size > 1000
    assert not caplog.records
    assert not recwarn.list


TEXT = "</script><b>$x_$ Grüße"


@pytest.fixture
def find(monkeypatch):
    """Templates from texts, found beside the shared files."""

    def found(text: str, **filters):
        monkeypatch.setattr("jinja2.PackageLoader", lambda *_: DictLoader({"page.j2": text, "page.css": "b {}"}))
        return find_template("any", "page.j2", **filters)

    return found


def test_values_are_escaped_in_text_and_in_json(find) -> None:
    page = find("{{ text }} {{ [text, 1] | tojson }}").render(text=TEXT)
    assert "<" not in page
    assert page.endswith('["\\u003c/script\\u003e\\u003cb\\u003e$x_$ Grüße",1]')
