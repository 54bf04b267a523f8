import pytest
from matplotlib.figure import Figure

from gcnsl import InputError
from gcnsl.pictures import FORMATS, check_picture, save_picture

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
