"""Try hostile input, and say how often the package did anything but work or refuse it in one line.

    python -m bench.hostile api --cases 2000 [--seed 0]

Subcommands: ``tables`` (fuzzed tables, compared with an independent reader), ``api`` (arguments of the wrong type or out
of range), ``models`` (damaged model folders), ``stores`` (damaged stores of results and exports), ``kills`` (commands
that are killed and repeated). Ends with exit code 1 if any case went wrong.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys

import torch
from bench.hostile.cases import run_cases, sample
from rich.console import Console

USUAL = {"tables": 10_000, "api": 2_000, "models": 1_000, "stores": 200, "kills": 200}


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*USUAL])
    parser.add_argument(
        "--cases", type=int, help="how many; by default " + ", ".join(f"{n} {w}" for w, n in USUAL.items())
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    options = parser.parse_args()
    console, rng = Console(), random.Random(options.seed)
    torch.set_num_threads(1)  # processes that are forked have no other threads
    cases = list(importlib.import_module(f"bench.hostile.{options.what}").cases(rng))
    chosen = sample(cases, options.cases or USUAL[options.what], rng)
    console.print(f"{options.what}: {len(chosen)} cases, seed {options.seed}")
    verdicts = run_cases(chosen, progress=True)
    verdicts.show(console)
    sys.exit(bool(verdicts.wrong))


if __name__ == "__main__":
    main()
