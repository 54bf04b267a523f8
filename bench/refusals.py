"""How long it takes to refuse a wrong option, file or column: each in a fresh process.

    python bench/refusals.py [--repeats 3]

Every refusal must be one line that names the place and what was meant, within 1.5 seconds of wall time on an idle
machine: torch and its like take seconds to load, so nothing that can be checked without them may wait for them. Prints
a table in Markdown with the least of some repeats, and writes ``bench/results/refusals.json``. Run it on idle cores.
``tests/cli/test_refusals.py`` checks the sentences, and that none of those libraries is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "refusals.json"
ALLOWED = 1.5
"""Seconds."""
TABLES = "--nodes nodes.csv --edges edges.csv"
CASES = {
    "train debian --method GCN": "did you mean gcn?",
    "train debian --method typo": "--method typo must be one of mlp, gcn, ",
    "train debian --metric auc": "did you mean roc-auc?",
    "train debian --method gcn --metric auc": "did you mean roc-auc?",
    "train debian --distil GCN": "did you mean gcn?",
    "train debian --quality fastest": "--quality fastest must be one of fast, good, best; did you mean fast?",
    "train debian --device gpu": "--device gpu must be auto, cpu, cuda or cuda:N",
    "train debian --split randon": "did you mean random?",
    "train debian --seed 4294967296": "--seed 4294967296 must be from 0 to 4294967295",
    "train debian --root none": "--root none is not a folder",
    "train corra": "GRAPH corra is not a known graph",
    "train none.npz": "GRAPH none.npz does not exist",
    "train texas --split stored": "--split stored does not exist for texas",
    "train debian --directed": "--directed is not possible",
    "train debian --method gcn --set drpout=0.1": "did you mean dropout?",
    "train debian --method gcn --set dropout=2": "--set dropout=2: it must be >= 0 and < 1",
    "train debian --method gcn --set num_layers=two": "--set num_layers=two: it must be a whole number",
    "train debian --method gcn --set norm=btch": "did you mean batch?",
    "train debian --method gcn --set dropout": "--set 'dropout' is not a setting",
    "train debian --class-weight heavy": "--class-weight heavy must be none, balanced, or positive weights",
    "train debian --method gcn --class-weight yes=-1": "--class-weight yes=-1 must be none, balanced",
    "train debian --method gcn --settings none.toml": "there is no such file",
    "train debian --method gcn --settings broken.toml": "broken.toml is not a TOML file",
    "train debian --plot p.bmp": "--plot p.bmp must end in one of .png",
    "train debian --report page.txt": "--report page.txt must end in .html",
    "train debian -o nodes.csv": "nodes.csv is a file",
    "train debian -o other": "other holds something other than a model",
    "train debian --set epochs=2": "--set is for one method",
    "train debian --method gcn --quality fast": "--quality is for auto",
    "train debian --method gcn --checkpoint-every 5": "--checkpoint-every needs a place",
    "train debian --label kind": "--label is about the table --nodes",
    f"train debian {TABLES}": "name one graph",
    "train --nodes nodes.csv": "name one graph",
    f"train {TABLES} --split-columns a --folds 3": "both say how nodes are split",
    f"train {TABLES} --weight hours --no-weight": "leave one out",
    "train --nodes none.csv --edges edges.csv": "--nodes none.csv does not exist",
    "train --nodes nodes.csv --edges none.csv": "--edges none.csv does not exist",
    "train --nodes nodes.xlsx --edges edges.csv": "--nodes nodes.xlsx must end in one of .csv",
    "train --nodes empty.csv --edges edges.csv": "empty.csv can't be read as a csv table",
    "train --nodes header.csv --edges edges.csv": "header.csv has no rows",
    "train --nodes uneven.csv --edges edges.csv": "row 1 has 1 instead of 4 cells",
    "train --nodes broken.parquet --edges edges.csv": "broken.parquet can't be read as a parquet table",
    "train --nodes nodes.csv --edges ids.csv": "ids.csv has 1 column(s), too few for target",
    f"train {TABLES} --label salary": "--label salary is not a column of nodes.csv, ",
    f"train {TABLES} --id name": "--id name is not a column",
    f"train {TABLES} --drop Salary,agee": "did you mean age?",
    f"train {TABLES} --categorical ages": "--categorical ages is not a column",
    f"train {TABLES} --numeric ages": "--numeric ages is not a column",
    f"train {TABLES} --weight hour": "--weight hour is not a column of edges.csv, which has source, target, hours",
    f"train {TABLES} --split-columns splits": "--split-columns splits is not a column",
    f"train {TABLES} --fold-column folds": "--fold-column folds is not a column",
    "inspect corra": "did you mean cora?",
    "inspect --nodes none.csv --edges edges.csv": "--nodes none.csv does not exist",
    f"inspect {TABLES} --label salary": "did you mean Salary?",
    "inspect debian --plot p.txt": "--plot p.txt must end in",
    "predict none": "none is not a folder",
    "predict other": "other is not a complete model",
    "predict model -o out.xlsx": "--output out.xlsx must end in one of .csv",
    "predict model --metric auc": "did you mean roc-auc?",
    "predict model --evaluate": "--evaluate needs labels",
    "predict model --plot p.png": "--plot draws what --evaluate finds",
    "predict model --device tpu": "--device tpu must be",
    "predict model corra": "did you mean cora?",
    f"predict model {TABLES} --label salary": "did you mean Salary?",
    "explain none 3": "none is not a folder",
    "explain other 3": "other is not a complete model",
    "explain model 3 --report p.txt": "--report p.txt must end in",
    "explain model 3 --device tpu": "--device tpu must be",
    "compare debian --models mlp,GCN": "did you mean gcn?",
    "compare debian --models ,": "names none",
    "compare debian --metric f1": "did you mean macro-f1?",
    "compare debian --set gat.dropout=0.1": "'gat' is not compared",
    "compare debian --set mlp.dropout=2": "--set dropout=2: it must be >= 0",
    "compare debian --models mlp --set mlp.drpout=0.1": "did you mean dropout?",
    "compare debian --settings none.toml": "there is no such file",
    "compare debian --class-weight heavy": "--class-weight heavy must be",
    "compare debian --split publik": "did you mean public?",
    f"compare {TABLES} --label salary": "did you mean Salary?",
    "search debian --method GCN": "did you mean gcn?",
    "search debian --metric auc": "did you mean roc-auc?",
    "search debian --jobs 2 --cluster local:2": "both say who does the work",
    "search debian --device tpu": "--device tpu must be",
    f"search {TABLES} --label salary": "did you mean Salary?",
    "options GCN": "did you mean gcn?",
    "datasets --root none": "--root none is not a folder",
    "reproduce acuracy": "did you mean accuracy?",
    "reproduce accuracy --methods GCN": "did you mean gcn?",
    "reproduce accuracy --datasets corra": "--datasets corra must be one of",
    "reproduce accuracy --splits publik": "--splits publik does not exist",
    "reproduce accuracy --device tpu": "--device tpu must be",
    "report none": "none is not a folder",
    "report other": "other is not a complete model",
    "report model --markdown t.md": "--markdown is for the paper's results",
    "report model corra": "did you mean cora?",
    "report --store none.jsonl": "none.jsonl",
}
"""What is refused, and a part of the sentence."""


def prepare(folder: Path) -> None:
    """Write the files that the cases name."""
    import torch

    from gcnsl.storage import save_folder

    contents = {
        "nodes.csv": "id,label,Salary,age\na,x,1,2\nb,y,2,3\n",
        "edges.csv": "source,target,hours\na,b,1\n",
        "nodes.xlsx": "id\n1\n",
        "empty.csv": "",
        "header.csv": "id,label,Salary,age\n",
        "uneven.csv": "id,label,Salary,age\na\n",
        "broken.parquet": "PAR1",
        "ids.csv": "id\na\n",
        "broken.toml": "[gcn",
        "other/notes.txt": "",
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    save_folder(folder / "model", {}, {"x": torch.zeros(1)})


def seconds_of(command: str, folder: Path) -> float:
    """The wall time of a command that is refused, in a fresh process."""
    began = time.perf_counter()
    line = [sys.executable, "-m", "gcnsl", *shlex.split(command)]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    assert done.returncode == 2, f"{command}: {done.stderr}"
    return seconds


def table_of(rows: dict[str, float]) -> str:
    """The table in Markdown, the slowest first."""
    lines = ["| command | seconds |", "| --- | ---: |"]
    slowest = sorted(rows.items(), key=lambda row: -row[1])
    return "\n".join([*lines, *(f"| `gcnsl {command}` | {seconds:.2f} |" for command, seconds in slowest)])


def main() -> None:
    """Measure all cases, print the table and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        rows = {command: min(seconds_of(command, Path(folder)) for _ in range(repeats)) for command in CASES}
    print(table_of(rows))
    late = [command for command, seconds in rows.items() if seconds > ALLOWED]
    print(f"\nThe slowest takes {max(rows.values()):.2f} s; {len(late)} of {len(rows)} take more than {ALLOWED} s.")
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "repeats": repeats}
    rounded = {command: round(seconds, 3) for command, seconds in rows.items()}
    RESULTS.write_text(json.dumps({"machine": machine, "seconds": rounded}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
