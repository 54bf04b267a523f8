import pytest
from jinja2 import DictLoader, UndefinedError

from gcnsl import InputError, pages

TEXT = "</script><b>$x_$ Grüße"


@pytest.fixture
def find(monkeypatch):
    """Templates from texts, found beside the shared files."""

    def found(text: str, **filters):
        monkeypatch.setattr("jinja2.PackageLoader", lambda *_: DictLoader({"page.j2": text, "page.css": "b {}"}))
        return pages.find_template("any", "page.j2", **filters)

    return found


def test_values_are_escaped_in_text_and_in_json(find) -> None:
    page = find("{{ text }} {{ [text, 1] | tojson }}").render(text=TEXT)
    assert "<" not in page
    assert page.endswith('["\\u003c/script\\u003e\\u003cb\\u003e$x_$ Grüße",1]')


def test_shared_files_and_filters(find) -> None:
    assert find('{% include "page.css" %}{{ 2 | twice }}', twice=lambda x: 2 * x).render() == "b {}4"


def test_an_unknown_name_is_an_error(find) -> None:
    with pytest.raises(UndefinedError):
        find("{{ absent }}").render()


def test_shared_templates_are_found_from_any_package() -> None:
    assert pages.find_template("gcnsl.experiments", "head.html.j2").name == "head.html.j2"


def test_the_ending_is_checked() -> None:
    assert pages.check_page("a/B.HTML").name == "B.HTML"
    with pytest.raises(InputError, match=r"page\('page.png'\) must end in .html"):
        pages.check_page("page.png")
