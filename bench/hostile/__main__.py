"""Try hostile input, and count how often the package did anything but work or refuse it in one line.

    python -m bench.hostile api [--cases 2000] [--seed 0]

Subcommands: ``tables`` (fuzzed tables, compared with an independent reader), ``api`` (arguments of the wrong type or
out of range), ``models`` (damaged model folders), ``stores`` (damaged stores of results and exports) and ``kills``
(commands that are killed and repeated). Prints what went wrong and a summary; the exit code is 1 if anything did.
"""

from __future__ import annotations

import argparse
import random
import sys

import torch
from bench.hostile.cases import run_cases
from rich.console import Console

from bench.hostile import chosen_cases

USUAL = {"tables": 10_000, "api": 2_000, "models": 1_000, "stores": 200, "kills": 200}


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*USUAL])
    usual = ", ".join(f"{number} {what}" for what, number in USUAL.items())
    parser.add_argument("--cases", type=int, help=f"how many; by default {usual}")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a process that is forked has no other threads
    cases = chosen_cases(options.what, options.cases or USUAL[options.what], random.Random(options.seed))
    console = Console()
    console.print(f"{options.what}: {len(cases)} cases, seed {options.seed}")
    verdicts = run_cases(cases, progress=True)
    verdicts.show(console)
    sys.exit(bool(verdicts.wrong))


if __name__ == "__main__":
    main()
