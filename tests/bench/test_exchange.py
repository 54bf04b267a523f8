from pathlib import Path
from typing import Any

import pytest
import torch
from bench.exchange import bytes_per_epoch, gathered, memory, to_markdown

from gcnsl import methods
from gcnsl.methods.together import follow, leading
from gcnsl.reconnection import in_groups as grouping
from gcnsl.sharding import process_group

from ..methods.together_cases import CASES, graph
from ..sharding.ranks import in_processes

SIZE = 2
CLASSES, NODES = 3, 131


def counting(received: list[float]) -> None:
    """Count the bytes that this process receives wherever processes exchange rows, gradients or groups."""
    share = (SIZE - 1) / SIZE

    def counted(name: str, of_bytes: float) -> Any:
        function = getattr(process_group, name)

        def call(*tensors: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = function(*tensors)
            received[0] += of_bytes * max(part.nbytes for part in (result, *tensors))
            return result

        return call

    for name, of_bytes in {
        "gather": share,
        "reduce_scatter": share,
        "add_up": 2 * share,
        "tensor_from_leader": 1,
    }.items():
        setattr(process_group, name, counted(name, of_bytes))


def bytes_of_an_epoch(name: str, in_groups: bool, interval: int) -> tuple[float, int] | None:
    """The bytes that the first process received in an epoch, and the number of weights that all have."""
    grouping.EXACT_NODES = 1 if in_groups else 1 << 15
    if process_group.rank() > 0:
        return follow("cpu")
    received, marks = [0.0], []
    counting(received)
    method, options = CASES[name]
    schedule = {"epochs": 4, "patience": 4, "evaluate_every": interval}
    found = methods.resolve(method, options=options | schedule)
    prepared = methods.prepare(found, graph(), seed=0, device=torch.device("cpu"))
    masks = {f"{part}_mask": graph()[f"{part}_mask"][:, 0] for part in ("train", "val")}
    with leading():
        model = methods.fit(prepared, **masks, seed=0, on_epoch=lambda _: marks.append(received[0])).model
    of_nodes = [layer.weight for layer in getattr(model, "node_layers", ())]
    shared = sum(weight.numel() for weight in model.parameters() if all(weight is not other for other in of_nodes))
    return (marks[3] - marks[1]) / 2, shared


@pytest.mark.parametrize(
    ("name", "in_groups", "interval"),
    [
        ("gcn-sl-plus", True, 2),
        ("gcn-sl-plus", False, 1),
        ("gcn-sl-plus", False, 2),
        ("gcn-sl-cc", True, 1),
        ("gcn", False, 2),
        ("mlp", False, 1),
    ],
)
def test_the_model_agrees_with_the_bytes_of_a_real_run(name: str, in_groups: bool, interval: int) -> None:
    counted, shared = in_processes(SIZE, bytes_of_an_epoch, name, in_groups, interval)[0]
    method, options = CASES[name]
    config = methods.resolve(method, options=options).config
    gathers = gathered(config, CLASSES, in_groups=in_groups)
    modelled = bytes_per_epoch(gathers, CLASSES, shared, NODES, SIZE, interval=interval)
    if in_groups:  # so few nodes do not fill their groups
        assert modelled < counted < 2 * modelled
    else:
        assert counted == pytest.approx(modelled, rel=0.01)


def test_the_page_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "many-processes.md"
    assert to_markdown("gcn-sl-plus") in page.read_text(encoding="utf-8")


def test_memory_shrinks_to_what_is_gathered() -> None:
    found = gathered(methods.resolve("gcn-sl-plus").config, 10, in_groups=True)
    used = [memory(found, 10, 6000, 10**6, size) for size in (1, 4, 64)]
    assert used[0] > 2 * used[1] > 4 * used[2] > 0
