"""The option ``--cluster``, and the workers that ``--cluster`` and ``--jobs`` ask for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.cli.console import busy
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.runs.executor import Executor

ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler do the work, such as tcp://10.0.0.1:8786; local:4 starts four "
        "workers on this machine. It needs gcnsl\\[cluster].",
        show_default=False,
    ),
]


def check_workers(cluster: str | None, jobs: int) -> None:
    """Refuse two answers to who does the work."""
    if cluster is not None and jobs > 1:
        raise InputError(f"--cluster {cluster} and --jobs {jobs} both say who does the work: give one of them")


@contextmanager
def workers(
    cluster: str | None, jobs: int = 1, *, quiet: bool, on_epoch: Callable[[Any, Any], None] | None = None
) -> Iterator["Executor"]:
    """The workers of the cluster at an address, or several processes, or this one, which tells its epochs."""
    check_workers(cluster, jobs)
    if cluster is not None:
        with busy("Asking the cluster", quiet=quiet):
            from gcnsl.runs.cluster import Cluster

            executor: Executor = Cluster(cluster)
    elif jobs > 1:
        from gcnsl.runs.processes import Processes

        executor = Processes(jobs)
    else:
        from gcnsl.runs.executor import ThisProcess

        executor = ThisProcess(on_epoch)
    with executor:
        yield executor
