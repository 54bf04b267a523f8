"""Loads graphs of the literature, the bundled graph and synthetic graphs by name, and npz files by path."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.datasets.benchmarks import NAMES, SPLITS, is_known, where
    from gcnsl.datasets.loading import load, with_folds, with_random_split
    from gcnsl.datasets.synthetic_graphs import synthetic
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["NAMES", "SPLITS", "is_known", "load", "synthetic", "where", "with_folds", "with_random_split"]
