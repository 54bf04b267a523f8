"""Disturb `gcnsl train` in every way that a machine or a user can, and look at what is left.

    python bench/hostile/faults.py [--only "killed"] [--cases 5] [--seed 0] [--record]

Commands are killed, lose workers, run out of memory or disk, meet a read-only folder, and are interrupted once and
twice. They must end with a documented exit code (0, 2 or 130) and without a traceback, leave neither processes nor
temporary files, lose nothing that was finished, and complete their work when they are given again. Prints a table;
the exit code is 1 if anything was wrong. With ``--record`` the figures go to bench/results/faults.json. Needs Linux
with ``unshare`` for small disks; those cases are skipped elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import math
import multiprocessing
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors
from rich.console import Console
from rich.progress import track
from rich.table import Table

import gcnsl

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).parents[1] / "results" / "faults.json"
GRAPH = "--nodes nodes.csv --edges edges.csv"
KILLS = 4
"""How often a command is killed before it is left alone."""
LONGEST = 300.0
PATIENCE = 40.0
"""How long a worker may take to notice that its command is gone: it may be importing torch on a busy machine."""
_OWN_MOUNTS = "GCNSL_FAULTS_OWN_MOUNTS"


@dataclass(frozen=True)
class Job:
    """A command; ``repeats`` if its result is the same whenever it is given."""

    name: str
    arguments: str
    repeats: bool

    def finished(self, folder: Path) -> dict[str, bytes]:
        """What must still be there, unchanged, after any disturbance: finished models of a selection, none cut."""
        finished = {}
        for path in folder.glob("model.checkpoint/*.safetensors"):
            with safetensors.safe_open(path, "numpy") as file:
                is_cut = json.loads(file.metadata()["fit"])["is_cut"]  # it is continued, and replaced
            finished |= {} if is_cut else {path.name: path.read_bytes()}
        return finished


ONE = Job(
    "one method", f"train {GRAPH} --method gcn --set epochs=400 --set patience=400 --checkpoint-every 5 -o model", True
)
AUTO = Job("auto", f"train {GRAPH} --minutes 0.15 --quality fast -o model", False)
JOBS = (ONE, AUTO)
LONGER = Job("auto", AUTO.arguments.replace("0.15", "0.4"), False)
"""Long enough for its workers to be busy, and to be idle."""


class Running:
    """A command in a session of its own; with ``terminal``, that session has one, which can send Ctrl-C."""

    def __init__(self, job: Job, folder: Path, *, terminal: bool = False, path: str = "") -> None:
        self.folder, self.temporary = folder, Path(tempfile.mkdtemp(prefix="faults-"))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the command has ended
        self._terminal, output = pty.openpty() if terminal else (None, self._log.fileno())
        paths = filter(None, [path, os.environ.get("PYTHONPATH")])
        environment = os.environ | {
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": os.pathsep.join(paths),
            "COLUMNS": "200",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gcnsl", *job.arguments.split()],
            cwd=folder,
            env=environment,
            stdin=output if terminal else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,  # noqa: PLW1509
        )
        self.began = time.monotonic()
        if terminal:
            os.close(output)

    def press_ctrl_c(self) -> None:
        """As a user does."""
        assert self._terminal is not None
        os.write(self._terminal, b"\x03")

    def sleep_until(self, seconds: float) -> bool:
        """Wait until so many seconds after the start; whether the command still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(max(0.0, self.began + seconds - time.monotonic()))
            return False
        return True

    def _wait(self, seconds: float) -> int:
        if self._terminal is None:
            return self.process.wait(seconds)
        end = time.monotonic() + seconds
        while True:  # a terminal that nobody reads makes the command wait
            self._drain()
            if self.process.poll() is not None:
                self._drain()
                return self.process.returncode
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.process.args, seconds)
            time.sleep(0.02)

    def _drain(self) -> None:
        os.set_blocking(self._terminal, False)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            while content := os.read(self._terminal, 65536):  # type: ignore[arg-type]
                self._log.write(content)

    def workers(self) -> list[int]:
        """The processes that the command has started to work for it."""
        return [
            pid
            for pid, parent, _, what in _processes()
            if parent == self.process.pid and "resource_tracker" not in what
        ]

    def kill(self) -> None:
        """Kill the command, but not its workers."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended(self, codes: tuple[int, ...] = (0,)) -> str:
        """What is wrong with how the command ended; it is waited for."""
        try:
            code = self._wait(LONGEST)
            code = 128 + signal.SIGINT if code == -signal.SIGINT else code  # as a shell says it
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return f"no end within {LONGEST:.0f} seconds"
        text = self.output()
        if "Traceback" in text or (code not in codes and code != -signal.SIGKILL):
            return f"exit code {code}: {text[-600:]}"
        if code == 2 and "Error: " not in text:
            return f"exit code 2 without a word: {text[-300:]}"
        return self.left(text)

    def output(self) -> str:
        """What was printed so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def left(self, told: str | None = None) -> str:
        """Which processes are left and, unless it was killed, which temporary files that it has not told of."""
        session, end = self.process.pid, time.monotonic() + PATIENCE
        while time.monotonic() < end and any(sid == session for _, _, sid, _ in _processes()):
            time.sleep(0.1)
        alive = [f"{pid} {what[:100]}" for pid, _, sid, what in _processes() if sid == session]
        for pid in alive:
            os.kill(int(pid.split()[0]), signal.SIGKILL)
        names = [path.name for path in self.temporary.iterdir() if not path.name.startswith("torchinductor_")]
        shutil.rmtree(self.temporary, ignore_errors=True)
        files = [name for name in names if told is not None and name not in told]
        return f"still alive: {alive}" if alive else f"left in the temporary folder: {files}" if files else ""


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """All processes: number, parent, session, command."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                what = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    yield int(entry.name), int(parent), int(session), what


def _used(pid: int) -> float:
    """Seconds of the processor that a process has used; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- the disturbances --------------------------------------------------------------------------------------------


class Bench:
    """What undisturbed commands do, and the cases."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self._known = rng, dict[str, tuple[float, Any]]()
        self.codes = Counter[int]()

    def undisturbed(self, job: Job) -> tuple[float, Any]:
        """How long a command takes, and its result."""
        if job.name not in self._known:
            with _folder() as folder:
                running = Running(job, folder)
                fault = running.ended()
                assert not fault, fault
                self._known[job.name] = time.monotonic() - running.began, _result(job, folder)
        return self._known[job.name]

    def completed(self, job: Job, folder: Path) -> str:
        """What is wrong with a command that was disturbed before and is now left alone."""
        fault = Running(job, folder).ended()
        if fault:
            return f"given again: {fault}"
        expected, found = self.undisturbed(job)[1], _result(job, folder)
        return "" if found == expected else f"another result than undisturbed: {str(found)[:200]}"

    def killed(self, job: Job) -> str:
        """SIGKILL at random moments, and the same command again."""
        kills = 0
        with _folder() as folder:
            before: dict[str, bytes] = {}
            while kills < KILLS:
                running = Running(job, folder)
                if not running.sleep_until(self.rng.uniform(0.2, 1.0) * self.undisturbed(job)[0]):
                    if fault := running.ended():
                        return fault
                    self.was_faster(job, running)
                    before = {}  # it is complete, and begins anew
                    continue
                running.kill()
                self.codes[running.process.returncode] += 1
                kills += 1
                if fault := running.left():  # who is killed can't clean up
                    return fault
                now = job.finished(folder)
                if before.items() - now.items() and not (folder / "model").exists():
                    return "a finished model is lost or was made again"
                before = now
            return self.completed(job, folder)

    def lost_worker(self, when: str) -> str:
        """SIGKILL for a worker that is starting, busy or idle; again, if there was none before the end."""
        with _folder() as folder:
            running = Running(LONGER, folder)
            victim = self._victim(running, when)
            with contextlib.suppress(ProcessLookupError):
                if victim:
                    os.kill(victim, signal.SIGKILL)
                if when == "idle":
                    os.kill(running.process.pid, signal.SIGCONT)
            fault = running.ended()
            if fault or not victim:
                return fault or self.lost_worker(when)
            self.codes[running.process.returncode] += 1
            return self._whole(folder)

    def _victim(self, running: Running, when: str) -> int:
        while running.process.poll() is None:
            for pid in running.workers():
                if when == "starting" or (when == "busy" and _used(pid) > self.rng.uniform(4, 8)):
                    return pid
                if when == "idle" and _used(pid) > 4:
                    os.kill(running.process.pid, signal.SIGSTOP)  # it hands out no more work
                    used = -1.0
                    while _used(pid) > used + 0.05:
                        used = _used(pid)
                        time.sleep(1)
                    return pid
            time.sleep(0.05)
        return 0

    def without_memory(self, how: str) -> str:
        """Workers that can't have the memory that they need, or fail in another way."""
        with _folder() as folder, tempfile.TemporaryDirectory() as path:
            Path(path, "sitecustomize.py").write_text(_SABOTAGE.replace("HOW", repr(how)), encoding="utf-8")
            running = Running(LONGER, folder, path=path)
            fault = running.ended()
            self.codes[running.process.returncode] += 1
            return fault or self._whole(folder)

    def bad_disk(self, job: Job, how: str) -> str:
        """A disk that becomes full or read-only, before or after something was finished."""
        with _folder() as folder:
            _mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder))
            try:
                return self._on_bad_disk(job, how, folder)
            finally:
                subprocess.run(["umount", "--lazy", str(folder)], check=True)

    def _on_bad_disk(self, job: Job, how: str, folder: Path) -> str:
        _write_tables(folder)
        if self.rng.random() < 0.5:
            running = Running(job, folder)
            if running.sleep_until(self.rng.uniform(0.5, 0.9) * self.undisturbed(job)[0]):
                running.kill()
                running.left()
        before = job.finished(folder)
        used = sum(path.stat().st_blocks for path in folder.rglob("*")) // 2
        size = f"size={used + self.rng.randint(8, 400) // 4 * 4}k"
        _mount("-o", f"remount,{'ro' if how == 'read-only' else size}", str(folder))
        running = Running(job, folder)
        fault = running.ended((0, 2))
        self.codes[running.process.returncode] += 1
        _mount("-o", "remount,rw,size=64m", str(folder))
        if fault:
            return fault
        if not (folder / "model").exists() and before.items() - job.finished(folder).items():
            return "a finished model is lost"
        return self.completed(job, folder)

    def interrupted(self, job: Job, times: int) -> str:
        """Ctrl-C, once or twice, at random moments: during imports, training and saving."""
        with _folder() as folder:
            running = Running(job, folder, terminal=True)
            moment = self.rng.uniform(0.05, 1.0) * self.undisturbed(job)[0]
            pressed = 0
            while pressed < times and running.sleep_until(moment):
                running.press_ctrl_c()
                pressed, moment = pressed + 1, moment + self.rng.choice((0.05, 0.3, 1.0, 2.5))
            fault = running.ended((0, 130))
            if not pressed and not fault:
                self.was_faster(job, running)
                return self.interrupted(job, times)
            self.codes[running.process.returncode] += 1
            if "Traceback" in fault and "gcnsl" not in running.output():
                fault = ""  # Python itself had hardly begun
            return fault or self.completed(job, folder)

    def was_faster(self, job: Job, running: Running) -> None:
        """Remember that an undisturbed command takes less time now: others use the machine, too."""
        self._known[job.name] = 0.9 * (time.monotonic() - running.began), self._known[job.name][1]

    def _whole(self, folder: Path) -> str:
        """What is wrong with a saved model."""
        proba = gcnsl.NodeClassifier.load(folder / "model", device="cpu").predict_proba()
        left = [path.name for path in folder.iterdir() if path.name not in ("nodes.csv", "edges.csv", "model")]
        sums = np.abs(proba.sum(axis=1) - 1).max()
        return f"left beside the model: {left}" if left else "" if sums < 1e-4 else "no probabilities"


_SABOTAGE = '''
"""Make processes that work for another one run out of memory as soon as they train a network."""
import importlib.abc, sys

HOW_ = HOW

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch.optim.adam":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            step = module.Adam.step
            def fail(self, *args, **options):
                import torch
                if HOW_ == "limit":
                    import resource
                    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
                    resource.setrlimit(resource.RLIMIT_AS, (size + 2**24, resource.RLIM_INFINITY))
                    torch.empty(2**28).normal_()
                elif HOW_ == "torch":
                    torch.empty(2**50)
                elif HOW_ == "numpy":
                    import numpy
                    numpy.empty(2**50)
                elif HOW_ == "bad_alloc":
                    raise RuntimeError("std::bad_alloc")
                elif HOW_ == "abort":
                    import os
                    os.abort()
                raise ValueError("a mistake of a contender")
            module.Adam.step = fail
        spec.loader.exec_module = exec_module
        return spec

if any("gcnsl.runs.processes" in word for word in sys.orig_argv):
    sys.meta_path.insert(0, Finder())
'''


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as place:
        _write_tables(Path(place))
        yield Path(place)


def _write_tables(folder: Path) -> None:
    """Write a small graph, as two files."""
    data = gcnsl.synthetic(n=200, classes=3, degree=4.0, features=6)
    nodes = pd.DataFrame(data.x.numpy()).add_prefix("f").assign(label=data.y.numpy()).rename_axis("id")
    nodes.to_csv(folder / "nodes.csv")
    pd.DataFrame(data.edge_index.T.numpy(), columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)


def _result(job: Job, folder: Path) -> Any:
    """What a command leaves: all files and, if it repeats itself, the probabilities bit for bit."""
    proba = gcnsl.NodeClassifier.load(folder / "model", device="cpu").predict_proba()
    return proba.tobytes() if job.repeats else proba.shape, sorted(path.name for path in folder.iterdir())


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


# --- the program -------------------------------------------------------------------------------------------------


def cases(bench: Bench) -> dict[str, tuple[int, Callable[[], str]]]:
    """All cases by group: how many there are, and what does one."""
    disks = os.environ.get(_OWN_MOUNTS) == "1"
    found: dict[str, tuple[int, Callable[[], str]]] = {}
    for job in JOBS:
        found[f"killed {KILLS} times, {job.name}"] = 100 // KILLS // 2 + (job is ONE), lambda job=job: bench.killed(job)
        for times, word in {1: "once", 2: "twice"}.items():
            found[f"Ctrl-C {word}, {job.name}"] = 10, lambda job=job, times=times: bench.interrupted(job, times)
        for how in ("full", "read-only") if disks else ():
            found[f"disk {how}, {job.name}"] = 4, lambda job=job, how=how: bench.bad_disk(job, how)
    for when, count in {"starting": 6, "busy": 7, "idle": 7}.items():
        found[f"worker killed, {when}"] = count, lambda when=when: bench.lost_worker(when)
    for how in ("limit", "torch", "numpy", "bad_alloc", "abort", "other error"):
        found[f"memory in a worker, {how}"] = 1, lambda how=how: bench.without_memory(how)
    return found


_bench: Bench


def _begin(cores: Queue[list[int]]) -> None:
    """Begin a process that runs cases, on cores of its own."""
    global _bench  # noqa: PLW0603 - it is this process's own
    os.sched_setaffinity(0, cores.get())
    _bench = Bench(random.Random())


def run_one(group: str, number: int, seed: int, until: float) -> tuple[str, int, str, Counter[int]] | None:
    """A case: its group and number, what is wrong with it, and the exit codes of what was disturbed."""
    if time.time() > until:
        return None
    _bench.rng.seed(f"{seed} {group} {number}")
    _bench.codes = Counter()
    fault = cases(_bench)[group][1]()
    return group, number, fault, _bench.codes


def run_all(
    chosen: list[tuple[str, int]], seed: int, jobs: int, until: float
) -> Iterator[tuple[str, int, str, Counter[int]]]:
    """Run cases, a few at a time, and yield each as soon as it has ended."""
    context = multiprocessing.get_context("spawn")
    cores, all_cores = context.Queue(), sorted(os.sched_getaffinity(0))
    for job in range(jobs):
        cores.put([all_cores[(2 * job + k) % len(all_cores)] for k in range(2)])
    with ProcessPoolExecutor(jobs, context, _begin, (cores,)) as pool:
        for future in as_completed([pool.submit(run_one, *case, seed, until) for case in chosen]):
            if (done := future.result()) is not None:
                yield done


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only groups whose name has this in it")
    parser.add_argument("--cases", type=int, help="how many cases of each group, at most")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time, each on two cores (default: 1)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after so many minutes")
    parser.add_argument("--seed", type=int, default=0, help="of all moments")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background has it ignored
    console, began = Console(), time.monotonic()
    if _OWN_MOUNTS not in os.environ:
        _enter_own_namespace(console)
    groups = {group: count for group, (count, _) in cases(Bench(random.Random())).items() if options.only in group}
    chosen = [
        (group, number) for group, count in groups.items() for number in range(min(count, options.cases or count))
    ]
    random.Random(options.seed).shuffle(chosen)  # if there is not enough time, some of each group are done
    counts, codes = Counter[str](), {group: Counter[int]() for group in groups}
    wrong = list[tuple[str, int, str]]()
    for group, number, fault, ended in track(
        run_all(chosen, options.seed, options.jobs, time.time() + 60 * options.minutes), "Cases", len(chosen)
    ):
        codes[group] += ended
        counts[group] += 1
        if fault:
            wrong.append((group, number, fault))
            console.print(f"{group}, case {number}: {fault}", style="red", markup=False, highlight=False)
    table = Table("", "cases", "wrong", "exit codes when disturbed")
    for group, count in counts.items():
        told = ", ".join(f"{times} × {code}" for code, times in sorted(codes[group].items()))
        table.add_row(group, str(count), str(sum(each[0] == group for each in wrong)), told)
    console.print(table)
    if options.record:
        git = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        facts = {"seed": options.seed, "commit": commit, "seconds": round(time.monotonic() - began)}
        content = facts | {"cases": dict(counts), "codes": codes, "wrong": [list(each) for each in wrong]}
        RECORD.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(bool(wrong))


def _enter_own_namespace(console: Console) -> None:
    """Start this program again where its disks are invisible to all others, if that is possible."""
    command = ["unshare", "--map-root-user", "--mount"]
    possible = shutil.which("unshare") and subprocess.run([*command, "true"], check=False).returncode == 0
    if possible:
        again = [*command, sys.executable, __file__, *sys.argv[1:]]
        os.execvpe(again[0], again, os.environ | {_OWN_MOUNTS: "1"})
    console.print("skipped: full and read-only disks, as nothing can be mounted here")
    os.environ[_OWN_MOUNTS] = "0"


if __name__ == "__main__":
    main()
