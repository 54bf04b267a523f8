"""Try hostile input, and count how often the package did anything but work or refuse it in one line.

    python -m bench.hostile api [--cases 2000] [--seed 0] [--minutes 30] [--record]

Subcommands: ``tables`` (fuzzed tables, compared with an independent reader), ``api`` (arguments of the wrong type or
out of range), ``arrays`` (of odd types, shapes and values), ``models`` (damaged model folders), ``kills`` (commands
that are killed and repeated) and ``places`` (full and read-only disks, locked files). Prints what went wrong and a
summary; the exit code is 1 if anything did. With ``--record`` the figures go to bench/results/hostile.json.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import torch
from bench.hostile.cases import BAD, GOOD, Verdicts, run_cases
from rich.console import Console

from bench.hostile import chosen_cases, places

USUAL = {"tables": 10_000, "api": 2_000, "arrays": 2_000, "models": 1_000, "kills": 50, "places": 60}
RECORD = Path(__file__).parents[1] / "results" / "hostile.json"


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*USUAL])
    usual = ", ".join(f"{number} {what}" for what, number in USUAL.items())
    parser.add_argument("--cases", type=int, help=f"how many; by default {usual}")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    parser.add_argument("--minutes", type=float, help="begin no case after so many minutes")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    options = parser.parse_args()
    if options.what == "places":
        places.enter_own_namespace()
    torch.set_num_threads(1)  # a process that is forked has no other threads
    began, console = time.monotonic(), Console()
    cases = chosen_cases(options.what, options.cases or USUAL[options.what], random.Random(options.seed))
    console.print(f"{options.what}: {len(cases)} cases, seed {options.seed}")
    verdicts = run_cases(cases, progress=True, minutes=options.minutes)
    verdicts.show(console)
    if options.record:
        record(options.what, verdicts, seed=options.seed, seconds=time.monotonic() - began)
    sys.exit(bool(verdicts.wrong))


def record(what: str, verdicts: Verdicts, *, seed: int, seconds: float, path: Path = RECORD) -> None:
    """Write the figures of one kind of case to the file that holds those of all kinds."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    known[what] = {
        "cases": verdicts.total.total(),
        "seed": seed,
        "seconds": round(seconds),
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
        "verdicts": {verdict: verdicts.total[verdict] for verdict in GOOD + BAD},
        "groups": {group: counts.total() for group, counts in sorted(verdicts.counts.items())},
        "wrong": [list(wrong) for wrong in verdicts.wrong],
    }
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
