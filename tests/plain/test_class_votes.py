import pytest
import torch

from gcnsl.errors import InputError
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.plain.label_propagation import LabelPropagation
from gcnsl.plain.twins import Twins


def test_votes_become_probabilities_of_which_none_is_zero() -> None:
    model = ClassVotes(4, 3)
    model.remember(torch.tensor([0, 0, 1, -1]), torch.tensor([1.0, 1.0, 2.0, 9.0]))
    assert model.labels.tolist() == [[1, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 0]]
    prior = torch.tensor([3, 3, 1]) / 7
    torch.testing.assert_close(model.prior, prior)
    found = model.log_probabilities(torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).softmax(dim=1)
    torch.testing.assert_close(found[0], 0.99 * torch.tensor([0.75, 0.25, 0]) + 0.01 * prior)
    torch.testing.assert_close(found[1], prior)


def test_labels_of_an_earlier_fit_are_forgotten() -> None:
    model = ClassVotes(2, 2)
    model.remember(torch.tensor([0, 1]), torch.ones(2))
    model.remember(torch.tensor([-1, 0]), torch.ones(2))
    assert model.labels.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("model", [LabelPropagation, Twins])
def test_sizes_are_checked(model) -> None:
    with pytest.raises(InputError, match=r"num_nodes\(0\) must be"):
        model(0, 2)
