"""Run many chains on valid graphs: inspect, train, save, load, predict, grow, explain, report, train again.

    python bench/hostile/chains.py [--chains 2000] [--jobs 2] [--seed 0] [--minutes M] [--record]
    python bench/hostile/chains.py --only 137                      # one of them, with all that is known of it
    python bench/hostile/chains.py --strangers FOLDER              # real graphs, from their raw files

The graphs and the steps are those of tests/chains, of which sixty are in `make test`. Prints what went wrong, by step
and by kind of graph, and how to repeat it; the exit code is 1 if anything did. With ``--record`` the figures go to
bench/results/chains.json.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parents[2]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # for its processes
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402
from rich.table import Table  # noqa: E402
from tests.chains.chain import Chain, Outcome, make_chain, run_chain  # noqa: E402

RECORD = Path(__file__).parents[1] / "results" / "chains.json"
REAL = 200
"""One of so many chains is run by commands in interpreters of their own, which takes thirty times as long."""


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no chain after so many minutes")
    parser.add_argument("--seed", type=int, default=0, help="of the first chain; the others follow (default: 0)")
    parser.add_argument("--only", type=int, metavar="SEED", help="run the chain of this seed")
    parser.add_argument("--strangers", type=Path, metavar="FOLDER", help="run chains on the real graphs in this folder")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    options = parser.parse_args()
    console, began = Console(), time.monotonic()
    if options.strangers:
        from bench.hostile.strangers import strangers

        chains: Iterable[Chain] = strangers(options.strangers, console)
    else:
        seeds = [options.only] if options.only is not None else range(options.seed, options.seed + options.chains)
        chains = map(make_chain, seeds)
    tally = Tally(console)
    for chain, outcome in run_all(list(chains), options.jobs, time.time() + 60 * options.minutes):
        tally.add(chain, outcome, aloud=options.only is not None)
    tally.show()
    if options.record:
        record(
            tally, "strangers" if options.strangers else "chains", seed=options.seed, seconds=time.monotonic() - began
        )
    sys.exit(bool(tally.wrong))


def run_all(chains: list[Chain], jobs: int, until: float) -> Iterator[tuple[Chain, Outcome]]:
    """Run chains, a few at a time, and yield each as soon as it has ended; none is begun later than ``until``."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        ended = {pool.submit(run_one, chain, until): chain for chain in chains}
        for future in track(as_completed(ended), total=len(ended), transient=True):
            if (outcome := future.result()) is not None:
                yield ended[future], outcome


def run_one(chain: Chain, until: float) -> Outcome | None:
    """Run a chain, unless it is too late to begin."""
    return run_chain(chain, real=chain.seed % REAL == REAL - 1) if time.time() < until else None


class Tally:
    """What came of the chains, by kind and by step."""

    def __init__(self, console: Console) -> None:
        self.console, self.chains = console, 0
        self.kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self.bad_kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self.steps: Counter[str] = Counter()
        self.wrong: list[tuple[int, str, str]] = []

    def add(self, chain: Chain, outcome: Outcome, *, aloud: bool = False) -> None:
        """Count a chain, and print what is wrong with it."""
        self.chains += 1
        self.steps += outcome.done
        for respect, kinds in chain.kinds.items():
            for kind in kinds.split("|") or [""]:
                self.kinds[respect][kind or "none"] += 1
                self.bad_kinds[respect][kind or "none"] += bool(outcome.failures)
        if aloud:
            self.console.print_json(data=chain.kinds | {"given": list(chain.options), "extras": sorted(chain.extras)})
        for step, what in outcome.failures:
            self.wrong.append((chain.seed, step, what))
            self.console.print(
                f"{chain.seed} {chain.method} {step}: {what}", style="red", markup=False, highlight=False
            )

    def show(self) -> None:
        """Print the numbers of chains by kind, of calls by step, and of failures of both."""
        bad = Counter(step for _, step, _ in self.wrong)
        steps = Table("step", "calls", "wrong", title="By step", title_justify="left")
        for step in sorted(self.steps.keys() | bad.keys()):
            steps.add_row(step, f"{self.steps[step]:,}", f"{bad[step]:,}")
        self.console.print(steps)
        kinds = Table("", "kind", "chains", "with failures", title="By kind", title_justify="left")
        for respect, counts in self.kinds.items():
            for kind, count in counts.most_common():
                kinds.add_row(respect, kind, f"{count:,}", f"{self.bad_kinds[respect][kind]:,}")
        self.console.print(kinds)
        seeds = sorted({seed for seed, _, _ in self.wrong})
        self.console.print(f"{self.chains:,} chains, {self.steps.total():,} calls, {len(seeds):,} chains with failures")
        if seeds:
            self.console.print(f"Repeat one: python bench/hostile/chains.py --only {seeds[0]}", highlight=False)


def record(tally: Tally, what: str, *, seed: int, seconds: float, path: Path = RECORD) -> None:
    """Write the figures to the file."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    known[what] = {
        "chains": tally.chains,
        "seed": seed,
        "seconds": round(seconds),
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
        "calls": dict(sorted(tally.steps.items())),
        "kinds": {respect: dict(counts.most_common()) for respect, counts in tally.kinds.items()},
        "wrong": [list(wrong) for wrong in sorted(tally.wrong)],
    }
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
