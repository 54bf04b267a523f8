import pytest
import torch

from bench import edge_choice
from gcnsl.nn import gcn_sl_plus
from gcnsl.nn.gcn_sl_plus import SimilarityHead


@pytest.mark.parametrize("name", edge_choice.VARIANTS)
def test_variants_change_the_edges_and_nothing_afterwards(name) -> None:
    torch.manual_seed(0)
    head, x, h = SimilarityHead(5, 4, mean_degree=3, epsilon=0.5), torch.randn(60, 5), torch.randn(60, 2)
    before = (SimilarityHead.forward, gcn_sl_plus.epsilon_for_degree, gcn_sl_plus.reconnect_at_any_size)
    usual = head(x, h)
    with edge_choice.variant(name) as options:
        changed = head(x, h)
    assert torch.equal(changed, usual) == (name in ("mean degree", "two heads"))
    assert options == ({"neighbours_heads": 2} if name == "two heads" else {})
    assert before == (SimilarityHead.forward, gcn_sl_plus.epsilon_for_degree, gcn_sl_plus.reconnect_at_any_size)
