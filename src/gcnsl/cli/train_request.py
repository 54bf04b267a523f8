"""What `gcnsl train` was asked for, whoever carries it out."""

from dataclasses import dataclass
from pathlib import Path

from gcnsl.cli.model_saving import checkpoint_of


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """The options that mean the same for one method and for ``auto``, by their names."""

    output: Path | None
    split: str
    run: int
    all_labels: bool
    seed: int
    device: str
    minutes: float | None
    plot: Path | None
    page: Path | None
    root: Path | None
    as_json: bool
    quiet: bool
    resumable: bool = True

    def checkpoint(self, number: int = 0) -> Path | None:
        """Where a run is kept until the model is saved, if it is; ``number`` counts the runs of this command."""
        return None if self.output is None or not self.resumable else checkpoint_of(self.output, number)
