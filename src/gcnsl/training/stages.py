"""Models that are fitted in stages rather than trained by gradient descent; validation nodes choose the best stage."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.errors import Interrupted
from gcnsl.sparse import Matrix
from gcnsl.training.devices import seeded
from gcnsl.training.history import Epoch, History
from gcnsl.training.interruption import Interruption
from gcnsl.training.objective import Objective
from gcnsl.training.passes import predict_logits
from gcnsl.training.settings import StageSettings
from gcnsl.training.time_budget import TimeBudget


class StagedModel(Protocol):
    """A ``torch.nn.Module`` that is fitted in one or more stages, and can predict after each of them.

    All it learns is in buffers whose shapes do not depend on the stage.
    """

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Fit the model, and yield after each stage.

        Args:
            inputs: What the model reads, on its device.
            y: Class numbers of the training nodes, -1 for all others (n).
            weight: What each training node weighs (n).
        """
        ...


def fit_in_stages(
    model: torch.nn.Module,
    inputs: Sequence[Matrix],
    y: Tensor,
    *,
    train_mask: Tensor,
    val_mask: Tensor,
    settings: StageSettings,
    seed: int,
    minutes: float | None = None,
    watch: Mapping[str, Tensor] | None = None,
    class_names: Sequence[Any] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> History:
    """Fit a :class:`StagedModel`; afterwards it is as it was after its best stage.

    A stage is an epoch of the history. Arguments are those of :func:`gcnsl.training.train`, and so are the reasons to
    end; the run also ends when the model has no further stage.

    Raises:
        Interrupted: On Ctrl-C or SIGTERM. Its ``so_far`` is the history, and the model has its best stage so far.
        InputError: If a mask is invalid.
    """
    budget, history, device = TimeBudget(minutes), History(), next(model.buffers()).device
    objective = Objective(
        y,
        train_mask=train_mask,
        val_mask=val_mask,
        watch=watch or {},
        settings=settings,
        class_names=class_names,
        device=device,
    )
    best: dict[str, Tensor] = {}
    with seeded(seed, device), Interruption() as interruption:
        try:
            for _ in _stages(model.eval(), inputs, objective):
                logits = predict_logits(model, inputs)
                values = objective.named(objective.on_device(objective.loss(logits, "train"), logits), logits)
                with interruption.whole():
                    if history.append(values, settings.monitor):
                        best = {name: value.clone() for name, value in model.state_dict().items()}
                    budget.count_epoch()
                    history.seconds = budget.elapsed
                if on_epoch is not None:
                    left = budget.seconds_left(history.remaining(settings))
                    on_epoch(history.last_epoch(objective.masks, settings, left))
                if history.remaining(settings) <= 0 or budget.is_spent:
                    history.stopped = history.why_ended(settings)
                    break
            else:
                history.stopped = "complete"
        except KeyboardInterrupt:
            interruption.ignore_further()
            when = f"after epoch {len(history)}" if len(history) else "in the first epoch"
            history.stopped = "interrupted"
            if len(history):
                model.load_state_dict(best)
            raise Interrupted(
                f"interrupted {when}; nothing was saved, because fitting begins anew", history if len(history) else None
            ) from None
    model.load_state_dict(best)
    return history


def _stages(model: torch.nn.Module, inputs: Sequence[Matrix], objective: Objective) -> Iterator[None]:
    """The stages of fitting to the training nodes; the model sees no other labels."""
    y, train = objective.y, objective.masks["train"]
    weight = torch.ones_like(y, dtype=torch.get_default_dtype())
    if objective.weights is not None:
        weight[train] = objective.weights[y[train]]
    staged: StagedModel = model  # type: ignore[assignment]
    return staged.stages(inputs, torch.where(train, y, UNLABELLED), weight)
