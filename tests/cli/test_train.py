import pytest


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "lr=1"], "Error: --set is for one method: name it with --method, or leave out --set"),
        (["--checkpoint-every", "3"], "Error: --checkpoint-every is for one method"),
        (["--method", "gcn", "--single"], "Error: --single is for auto: leave out --method, or leave out --single"),
        (["--method", "gcn", "--runs", "2"], "Error: --runs is for auto"),
        (["--quality", "superb"], "Error: --quality superb must be one of fast, good, best"),
        (["--distil", "gnc"], "Error: --distil gnc must be one of mlp"),
        (["--minutes", "0"], "Error: --minutes 0.0 must be > 0"),
    ],
)
def test_options_that_do_not_fit_are_one_line(gcnsl, people, options, told) -> None:
    code, _, err = gcnsl("train", *people, *options)
    assert code == 2
    assert err.startswith(told)
    assert err.count("\n") == 1
