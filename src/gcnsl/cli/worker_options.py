"""The options that say who does the work, and what they ask for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gcnsl.cli.console import busy
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.workers.executor import Executor

ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler do the work, such as tcp://10.0.0.1:8786; local:4 starts four "
        "workers on this machine. It needs gcnsl\\[cluster].",
        show_default=False,
    ),
]


@contextmanager
def workers(cluster: str | None, jobs: int | None = None, *, quiet: bool) -> Iterator["Executor | None"]:
    """The workers at an address, or so many processes; ``None`` if both are missing, or for a single process."""
    several = jobs is not None and jobs > 1
    if cluster is not None and several:
        raise InputError(f"--cluster {cluster} and --jobs {jobs} both say who does the work: give one of them")
    with ExitStack() as opened:
        if cluster is not None:
            with busy("Asking the cluster", quiet=quiet):
                from gcnsl.workers.cluster import Cluster

                yielded: Executor = opened.enter_context(Cluster(cluster))
            yield yielded
        elif jobs is not None and several:
            from gcnsl.workers.processes import Processes

            yield opened.enter_context(Processes(jobs))
        else:
            yield None
