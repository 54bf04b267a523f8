"""Commands that are killed at any moment and given again: nothing finished is lost or done twice, and results agree.

``train`` must give the model of an undisturbed run, bit for bit; ``reproduce`` every run once; ``search`` as many
trials as were asked for. The graph is Texas, whose files must be there or in the folder that GCNSL_DATA names.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench.hostile.cases import Case

import gcnsl
from gcnsl.experiments.result_exports import read_results

ENDLESS = True
GRAPH = "texas"
SECONDS = 900
"""More than a command takes that is killed, repeated, killed and repeated."""
COMMANDS = {
    "train": f"train {GRAPH} --method gcn --set epochs=150 --checkpoint-every 5 -o model",
    "reproduce": f"reproduce accuracy --methods mlp --datasets {GRAPH} --splits random --runs 3 --store store.db",
    "search": f"search {GRAPH} --method mlp --trials 4 --runs 1 --study study.db -o found.toml",
}
RUNS, TRIALS = 3, 4
KILLS = 2
"""How often a command is killed before it may finish."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Commands that are killed, without end."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        _finish("train", Path(folder))
        seconds, expected = time.perf_counter() - began, _predictions(Path(folder))
    while True:
        name, moments = rng.choice([*COMMANDS]), [rng.uniform(0.2, 1.1) * seconds for _ in range(KILLS)]
        call = partial(killed_and_repeated, name, moments, expected)
        yield Case(f"kills, {name}", "killed after " + ", ".join(f"{at:.2f} s" for at in moments), call, str, SECONDS)


def killed_and_repeated(name: str, moments: list[float], expected: Any) -> str:
    """What is wrong after a command was killed, repeated, killed again and at last finished; nothing is ""."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for moment in moments:
            process = _start(name, folder)
            try:
                process.wait(timeout=moment)
                break  # it was faster
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        fault = _finish(name, folder)
        return fault or _fault(name, folder, expected)


def _fault(name: str, folder: Path, expected: Any) -> str:
    if name == "train":
        left = sorted(path.name for path in folder.iterdir() if path.name != "model")
        if left:
            return f"left behind: {', '.join(left)}"
        return "" if np.array_equal(_predictions(folder), expected) else "the model predicts something else"
    if name == "reproduce":
        results = [result for result in read_results(folder / "store.db") if result.status == "ok"]
        numbers = sorted(result.spec.run for result in results)
        return "" if numbers == list(range(RUNS)) else f"there are the runs {numbers}"
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{folder / 'study.db'}"
    (study,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=study, storage=storage).trials
    complete = [trial for trial in trials if trial.state.name in ("COMPLETE", "PRUNED")]
    return "" if len(complete) == TRIALS else f"there are {len(complete)} trials instead of {TRIALS}"


def _start(name: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gcnsl", *COMMANDS[name].split(), "--device", "cpu", "--quiet"]
    home = Path(gcnsl.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(home)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def _finish(name: str, folder: Path) -> str:
    process = _start(name, folder)
    _, errors = process.communicate()
    return "" if process.returncode == 0 else f"exit code {process.returncode}: {errors.strip()[-200:]}"


def _predictions(folder: Path) -> Any:
    return gcnsl.NodeClassifier.load(folder / "model", device="cpu").predict_proba()
