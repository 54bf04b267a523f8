"""Steps of a chain, each in a process of its own that has imported the package already.

A step is a list of calls: a list of arguments for the command line, or a function with its arguments. The server from
which processes are forked imports everything once, so that a step costs what it does and not its imports.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

Call = list[str] | tuple[Any, ...]
"""Arguments of the command line, or a function and its arguments."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
ENVIRONMENT = {**dict.fromkeys(_THREADS, "1"), "LOKY_MAX_CPU_COUNT": "2", "COLUMNS": "250", "MPLBACKEND": "agg"}
"""One thread each; ``auto`` sees two cores, however many there are, and has two processes."""
RECORD = "before"
"""The file with the probabilities that a model had before it was saved, beside the folder in which commands run."""
SMALL = 300
"""Graphs of more nodes are not predicted once more with other edges."""


class Ended(NamedTuple):
    """How a call ended: its exit code (or the traceback), what it printed, and what it returned."""

    code: int | str
    out: str
    err: str
    value: Any = None


_starting = threading.Lock()


def _server() -> Any:
    """Where processes are forked; the first call starts the server and has it import everything."""
    context = multiprocessing.get_context("forkserver")
    with _starting:
        import gcnsl

        found = (module.name for module in pkgutil.walk_packages(gcnsl.__path__, "gcnsl."))
        modules = [name for name in found if "triton" not in name and not name.endswith("__main__")]
        context.set_forkserver_preload(
            ["torch", "pydantic", "pyarrow.dataset", *modules, "matplotlib.pyplot", __name__, f"{__package__}.chain"]
        )
        with mock.patch.dict(os.environ, ENVIRONMENT):
            forkserver.ensure_running()
    return context


def run_step(calls: Sequence[Call], folder: Path, seconds: float = 60, *, real: bool = False) -> list[Ended]:
    """Do calls one after the other in one new process; with ``real``, each in an interpreter of its own.

    What is left in the temporary folder afterwards is an error of the last call. If the process dies, the list is
    shorter than the calls, and ends with what is known of its death.
    """
    with tempfile.TemporaryDirectory(prefix="chain-") as temporary:
        if real:
            ended = [
                each
                for call in calls
                for each in (
                    [_for_real(call, folder, temporary, seconds)]
                    if isinstance(call, list)
                    else _forked([call], folder, temporary, seconds)
                )
            ]
        else:
            ended = _forked(calls, folder, temporary, seconds)
        left = sorted(path.name for path in Path(temporary).iterdir() if not path.name.startswith("torchinductor_"))
    if left and ended:
        ended[-1] = ended[-1]._replace(err=f"{ended[-1].err}\nleft in the temporary folder: {left[:5]}")
    return ended


def _for_real(call: list[str], folder: Path, temporary: str, seconds: float) -> Ended:
    environment = os.environ | ENVIRONMENT | {"TMPDIR": temporary}
    command = [sys.executable, "-m", "gcnsl", *call]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Ended(f"no end within {seconds} seconds", "", "")
    return Ended(done.returncode, done.stdout, done.stderr)


def _forked(calls: Sequence[Call], folder: Path, temporary: str, seconds: float) -> list[Ended]:
    context = _server()
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(calls, str(folder), temporary, writing))
    process.start()
    writing.close()
    ended: list[Ended] = []
    try:
        while len(ended) < len(calls):
            if not reading.poll(seconds):
                return [*ended, Ended(f"no end within {seconds} seconds", "", "")]
            ended.append(reading.recv())
    except EOFError:
        process.join()
        output = [(Path(temporary) / name).read_text(errors="replace") for name in (".out", ".err")]
        return [*ended, Ended(f"the process died with exit code {process.exitcode}", *output)]
    finally:
        reading.close()
        process.join(5)
        process.kill()
        process.join()
        for name in (".out", ".err"):
            (Path(temporary) / name).unlink(missing_ok=True)
    return ended


def _work(calls: Sequence[Call], folder: str, temporary: str, writing: Connection) -> None:
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    for call in calls:
        files = [
            os.open(os.path.join(temporary, name), os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in (".out", ".err")
        ]
        os.dup2(files[0], 1)
        os.dup2(files[1], 2)
        code, value = _done(call)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        texts = [os.pread(file, 2**26, 0).decode(errors="replace") for file in files]
        for file in files:
            os.close(file)
        writing.send(Ended(code, *texts, value))


def _done(call: Call) -> tuple[int | str, Any]:
    try:
        if isinstance(call, list):
            from gcnsl import cli

            sys.argv = ["gcnsl", *call]
            cli.main()
            return 0, None
        function: Callable[..., Any] = call[0]
        return 0, function(*call[1:])
    except SystemExit as stop:
        return (stop.code if isinstance(stop.code, int) else int(stop.code is not None)), None
    except BaseException:
        return traceback.format_exc(), None


def of_changed(classifier: Any) -> Any:
    """The probabilities of a small graph whose first edge is gone: nothing that was computed in training tells them."""
    import numpy as np

    from gcnsl import InputError
    from gcnsl.estimator.explanation import without_edges

    graph = classifier.graph_
    if not graph.num_edges or graph.num_nodes > SMALL:
        return np.empty(0)
    try:
        return classifier.predict_proba_graph(without_edges(graph, *graph.edge_index[:, 0].tolist()))
    except InputError:  # of Geom-GCN, which has seen no other graph
        return np.empty(0)


def train(*arguments: str) -> int:
    """``gcnsl train`` that also records the probabilities of the model just before it is saved."""
    import numpy as np

    from gcnsl import NodeClassifier, __main__

    save = NodeClassifier.save

    def recorded(classifier: NodeClassifier, *args: Any, **options: Any) -> None:
        told = {"proba": classifier.predict_proba(), "predicted": classifier.predict()}
        np.savez(Path("..", f"{RECORD}.npz"), **told, changed=of_changed(classifier))
        save(classifier, *args, **options)

    sys.argv = ["gcnsl", "train", *arguments]
    with mock.patch.object(NodeClassifier, "save", recorded), mock.patch.object(__main__, "_exit", sys.exit):
        try:
            __main__.main()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0
