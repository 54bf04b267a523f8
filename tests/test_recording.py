import pytest

from gcnsl.recording import is_recorded, recorded


def test_work_is_recorded_in_the_block_alone() -> None:
    assert not is_recorded()
    with recorded():
        assert is_recorded()
    assert not is_recorded()


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError), recorded():
        raise KeyError
    assert not is_recorded()
