"""The time that a run may take, and the time that it will still take."""

import math
import time

from gcnsl.checks import check_number


class TimeBudget:
    """The clock of a run: it starts when the object is made.

    Args:
        minutes: How long the run may take; ``None`` for as long as it needs. The first epoch always fits.
    """

    def __init__(self, minutes: float | None = None) -> None:
        if minutes is not None:
            check_number("minutes", minutes, least=0)
        self._began, self._epochs = time.perf_counter(), 0
        self._seconds = math.inf if minutes is None else 60 * minutes

    def count_epoch(self) -> int:
        """To be called after each epoch; returns the number of epochs so far."""
        self._epochs += 1
        return self._epochs

    @property
    def is_spent(self) -> bool:
        """Whether another epoch would end too late, if it takes as long as those so far."""
        return self._epochs > 0 and not self._has_time_for(1)

    @property
    def is_almost_spent(self) -> bool:
        """Whether there is time for at most one more epoch."""
        return not self._has_time_for(2)

    def seconds_left(self, epochs: int) -> float:
        """An estimate for so many more epochs, from the mean time of those so far."""
        return max(0.0, min(epochs * self._per_epoch, self._seconds - self.elapsed))

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._began

    def _has_time_for(self, epochs: int) -> bool:
        return self.elapsed + epochs * self._per_epoch <= self._seconds

    @property
    def _per_epoch(self) -> float:
        return self.elapsed / max(1, self._epochs)
