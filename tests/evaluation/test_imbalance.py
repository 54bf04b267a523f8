import pytest
import torch

from gcnsl.evaluation import find_imbalance


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([50, 50], None),
        ([66, 34], None),
        ([67, 33], ("67% of the labelled nodes are 'a'", "average-precision")),
        ([5, 95], ("95% of the labelled nodes are 'b'", "average-precision")),
        ([40, 30, 5], None),
        ([60, 55, 5], None),
        ([5, 80, 15], ("80% of the labelled nodes are 'b'", "balanced-accuracy")),
        ([80, 0, 20], ("80% of the labelled nodes are 'a'", "average-precision")),
        ([60] * 16 + [10], None),
        ([90, 0], None),
        ([5] * 20, None),
        ([50, 50, 0], None),
    ],
)
def test_what_is_remarked_on(counts, expected) -> None:
    y = torch.tensor([-1, *(c for c, count in enumerate(counts) for _ in range(count)), -1])
    assert find_imbalance(y, "abcdefghijklmnopqrstuvwxyz"[: len(counts)]) == expected


def test_without_labels_nothing_is_uneven() -> None:
    assert find_imbalance(torch.tensor([-1, -1]), ["a", "b"]) is None
    assert find_imbalance(torch.tensor([-1, -1]), []) is None
