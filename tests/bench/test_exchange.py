from typing import Any

import pytest
import torch
from bench.exchange import bytes_per_epoch, gathered

from gcnsl import methods
from gcnsl.methods.together import follow, leading
from gcnsl.reconnection import in_groups as grouping
from gcnsl.sharding import process_group

from ..methods.together_cases import CASES, graph
from ..sharding.ranks import in_processes

SIZE = 2


def bytes_of_an_epoch(name: str, in_groups: bool) -> int | None:
    """The bytes that the first process received in its second epoch, counted where processes exchange something."""
    grouping.EXACT_NODES = 1 if in_groups else 1 << 15
    received, marks = [0], []

    def counted(function: Any, share: float) -> Any:
        def call(tensor: torch.Tensor) -> torch.Tensor:
            result = function(tensor)
            received[0] += share * max(result.nbytes, tensor.nbytes)
            return result

        return call

    share = (SIZE - 1) / SIZE
    for function, of_bytes in {"gather": share, "reduce_scatter": share, "add_up": 2 * share}.items():
        setattr(process_group, function, counted(getattr(process_group, function), of_bytes))
    process_group.tensor_from_leader = counted(process_group.tensor_from_leader, 1.0)
    if process_group.rank() > 0:
        process_group.tensor_from_leader = lambda: process_group.__dict__["_original"]()
        return follow("cpu")
    with leading():
        method, options = CASES[name]
        found = methods.resolve(method, options={**options, "epochs": 3, "patience": 3})
        prepared = methods.prepare(found, graph(), seed=0, device=torch.device("cpu"))
        masks = {f"{part}_mask": graph()[f"{part}_mask"][:, 0] for part in ("train", "val")}
        methods.fit(prepared, **masks, seed=0, on_epoch=lambda _: marks.append(received[0]))
    return marks[2] - marks[1]
