"""Run many chains on valid graphs: inspect, train, save, load, predict, grow, explain, report, train again.

    python bench/hostile/chains.py [--chains 2000] [--jobs 2] [--seed 0] [--minutes M] [--results FILE]
    python bench/hostile/chains.py --only 137                      # one of them, with all that is known of it
    python bench/hostile/chains.py --strangers FOLDER              # real graphs, from their raw files

The graphs and the steps are those of tests/chains, of which some are in `make test`. Prints what went wrong, by step
and by kind of graph, and how to repeat it; the exit code is 1 if anything did. With ``--results`` the file has all of
this as JSON, from the first chains on, and the same command later runs only those that it lacks.

Every chain has its seed, one thread, the CPU, and at most two processes for ``auto``, however many cores and GPUs the
machine has. Nothing needs a network or an installed package: ``PYTHONPATH=src`` is enough.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PLACES = [str(ROOT), *map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
os.environ["PYTHONPATH"] = os.pathsep.join(PLACES)  # for its processes, which work in other folders
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path.insert(0, str(ROOT))

from tests.chains.steps import ENVIRONMENT  # noqa: E402

os.environ.update(ENVIRONMENT)  # before NumPy is loaded

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from tests.chains.chain import Chain, Failure, make_chain, run_chain  # noqa: E402

REAL = 200
"""One of so many chains is run by commands in interpreters of their own, which takes thirty times as long."""
SAVE_SECONDS, TELL_EVERY, SLOWEST = 5.0, 50, 10


class Done(NamedTuple):
    """What came of one chain."""

    seed: int
    method: str
    kinds: dict[str, str]
    seconds: float
    calls: Counter[str]
    failures: list[Failure]


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no chain after so many minutes")
    parser.add_argument("--seed", type=int, default=0, help="of the first chain; the others follow (default: 0)")
    parser.add_argument("--only", type=int, metavar="SEED", help="run the chain of this seed")
    parser.add_argument("--strangers", type=Path, metavar="FOLDER", help="run chains on the real graphs in this folder")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON of what came of them; resumed if it exists")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    chains: Iterable[int | Chain] = range(options.seed, options.seed + options.chains)
    if options.strangers:
        from bench.hostile.strangers import strangers

        chains = strangers(options.strangers, console)
    elif options.only is not None:
        chains = [options.only]
        chain = make_chain(options.only)
        console.print_json(data=chain.kinds | {"given": list(chain.options), "extras": sorted(chain.extras)})
    tally = Tally("strangers" if options.strangers else "drawn", options.results)
    waiting = [chain for chain in chains if (chain if isinstance(chain, int) else chain.seed) not in tally.seeds]
    try:
        for done in run_all(waiting, options.jobs, time.time() + 60 * options.minutes):
            tally.add(done)
            for step, what in done.failures:
                print(f"{done.seed} {done.method} {step}: {what}", flush=True)
            if len(tally.seeds) % TELL_EVERY == 0:
                print(f"{len(tally.seeds):,} chains, {len(tally.wrong_seeds):,} with failures", flush=True)
    except BrokenProcessPool:
        sys.exit("A process of this program was killed, perhaps for lack of memory; the same command goes on.")
    finally:
        tally.save()
    tally.show(console)
    sys.exit(bool(tally.wrong))


def run_all(chains: Sequence[int | Chain], jobs: int, until: float) -> Iterator[Done]:
    """Run chains, a few at a time, and yield each as soon as it has ended; none is begun later than ``until``."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_one, chain, until) for chain in chains]):
            if (done := future.result()) is not None:
                yield done


def run_one(chain: int | Chain, until: float) -> Done | None:
    """Run a chain, or that of a seed, unless it is too late to begin."""
    if (began := time.time()) >= until:
        return None
    try:
        chain = make_chain(chain) if isinstance(chain, int) else chain
    except Exception:  # a mistake of this program
        return Done(int(chain), "", {}, 0.0, Counter(), [Failure("draw", traceback.format_exc())])  # type: ignore[arg-type]
    outcome = run_chain(chain, real=chain.seed % REAL == REAL - 1)
    return Done(chain.seed, chain.method, chain.kinds, time.time() - began, outcome.done, outcome.failures)


class Tally:
    """What came of chains, in all and by kind and step; with a ``path``, kept in that file."""

    def __init__(self, graphs: str, path: Path | None = None) -> None:
        self.path, self._saved = path, time.monotonic()
        self.identity = {"graphs": graphs, "sources": digest_of_sources()}
        self.seeds: set[int] = set()
        self.seconds = 0.0
        self.calls: Counter[str] = Counter()
        self.kinds: dict[str, Counter[str]] = {}
        self.bad_kinds: dict[str, Counter[str]] = {}
        self.slowest: list[list[Any]] = []
        self.wrong: list[list[Any]] = []
        if path is not None and path.exists():
            self._load(json.loads(path.read_text(encoding="utf-8")))

    @property
    def wrong_seeds(self) -> set[int]:
        """The seeds of chains with failures."""
        return {seed for seed, *_ in self.wrong}

    def add(self, done: Done) -> None:
        """Count a chain."""
        self.seeds.add(done.seed)
        self.seconds += done.seconds
        self.calls += done.calls
        for respect, kinds in done.kinds.items():
            for kind in kinds.split("|"):
                self.kinds.setdefault(respect, Counter())[kind or "none"] += 1
                self.bad_kinds.setdefault(respect, Counter())[kind or "none"] += bool(done.failures)
        self.slowest = sorted([*self.slowest, [round(done.seconds, 1), done.seed, done.method]])[-SLOWEST:]
        self.wrong += [[done.seed, done.method, *failure] for failure in done.failures]
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file: each entry on a line of its own."""
        if self.path is None:
            return
        git = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False
        )
        content = self.identity | {
            "commit": git.stdout.strip(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "chains": len(self.seeds),
            "with failures": len(self.wrong_seeds),
            "seconds": round(self.seconds),
            "calls": dict(sorted(self.calls.items())),
            "kinds": {respect: dict(counts.most_common()) for respect, counts in self.kinds.items()},
            "kinds with failures": {respect: dict(+counts) for respect, counts in self.bad_kinds.items()},
            "slowest": self.slowest,
            "wrong": sorted(self.wrong),
            "seeds": sorted(self.seeds),
        }
        lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in content.items()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f"{self.path.name}.part")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", errors="backslashreplace")
        part.replace(self.path)
        self._saved = time.monotonic()

    def _load(self, known: dict[str, Any]) -> None:
        if {name: known.get(name) for name in self.identity} != self.identity:
            sys.exit(f"{self.path} is of other sources or graphs: delete it, or give another file")
        self.seeds, self.seconds, self.calls = set(known["seeds"]), known["seconds"], Counter(known["calls"])
        self.kinds = {respect: Counter(counts) for respect, counts in known["kinds"].items()}
        self.bad_kinds = {respect: Counter(counts) for respect, counts in known["kinds with failures"].items()}
        self.slowest, self.wrong = known["slowest"], known["wrong"]

    def show(self, console: Console) -> None:
        """Print the numbers of chains by kind, of calls by step, and of failures of both."""
        bad = Counter(step for _, _, step, _ in self.wrong)
        steps = Table("step", "calls", "wrong", title="By step", title_justify="left")
        for step in sorted(self.calls.keys() | bad.keys()):
            steps.add_row(step, f"{self.calls[step]:,}", f"{bad[step]:,}")
        kinds = Table("", "kind", "chains", "with failures", title="By kind", title_justify="left")
        for respect, counts in self.kinds.items():
            for kind, count in counts.most_common():
                kinds.add_row(respect, kind, f"{count:,}", f"{self.bad_kinds[respect][kind]:,}")
        console.print(kinds, steps)
        seeds = sorted(self.wrong_seeds)
        console.print(f"{len(self.seeds):,} chains, {self.calls.total():,} calls, {len(seeds):,} chains with failures")
        if seeds:
            console.print(f"With failures: {', '.join(map(str, seeds))}", highlight=False)
            console.print(f"Repeat one: python bench/hostile/chains.py --only {seeds[0]}", highlight=False)


def digest_of_sources() -> str:
    """A digest of the package and of the chains."""
    digest = hashlib.sha256()
    for folder in (ROOT / "src" / "gcnsl", ROOT / "tests" / "chains", Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
