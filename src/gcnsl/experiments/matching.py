"""Which result belongs to which run, although options have been added since."""

from collections.abc import Iterable

from gcnsl.experiments.results import RunResult
from gcnsl.methods import METHODS


def by_key(results: Iterable[RunResult]) -> dict[str, RunResult]:
    """Results by the key of their specification, as this version would name it.

    A run of before there was an option counts as one with the option's default. Of several results of one run one that
    went well counts.
    """
    found: dict[str, RunResult] = {}
    for result in results:
        known = result.spec.task == "train" and result.spec.method in METHODS
        spec = result.spec.with_defaults(METHODS[result.spec.method].options()) if known else result.spec
        if spec.key not in found or found[spec.key].status == "failed":
            found[spec.key] = result
    return found
