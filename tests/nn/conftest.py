import pytest
import torch


@pytest.fixture
def double():
    """Double precision, so that a model and its equations agree to the last digits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)
