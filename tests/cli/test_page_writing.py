from pathlib import Path

from gcnsl import NodeClassifier
from gcnsl.cli import console
from gcnsl.cli.page_writing import write_page


def test_the_page_is_written_and_news_of_it_printed(model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(console, "NEWS_SECONDS", -1)
    classifier = NodeClassifier.load(model)
    measured = write_page(classifier, Path(tmp_path / "page.html"), None, name="People", seconds=0)
    assert measured.kind == "validation"
    assert "<h1>People</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Explaining nodes: 1 of 90, about 0 s left" in capsys.readouterr().err
    write_page(classifier, Path(tmp_path / "page.html"), None, seconds=0, quiet=True)
    assert capsys.readouterr().err == ""
