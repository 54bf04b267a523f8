"""Trains on graphs as their owners publish them, in one command each, with and without texts, dates and edge columns.

    python bench/strangers.py FOLDER [--method sage]

FOLDER has ``air-routes``, ``german``, ``larva-connectome``, ``pygod-books``, ``blogcatalog`` and ``amazon-photo``, with
the files that ``docs/how-to/messy-files.md`` names. LightGBM sees the same columns, those of the edges too, but nothing
else of the neighbours. Prints a table in Markdown and writes ``bench/results/strangers.json``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "strangers.json"
COUNTS = "hemisphere,lineage,axon_output,axon_input,dendrite_output,dendrite_input"
GRAPHS = {
    "air-routes": (
        "--nodes air-routes/air-routes-latest-nodes.csv --edges air-routes/air-routes-latest-edges.csv "
        "--label country:string --unknown ? --drop lat:double,lon:double,region:string,icao:string"
    ),
    "german": "--nodes german/german.csv --edges german/german_edges.txt.gz --label GoodCustomer",
    "larva-connectome": (
        "--nodes larva-connectome/meta_data.csv.gz --edges larva-connectome/G_edgelist.txt.gz --label simple_group "
        f"--unknown unk --directed --only {COUNTS}"
    ),
    "pygod-books": "pygod-books/books.pt.zip",
    "blogcatalog": "blogcatalog/blogcatalog.npz",
    "amazon-photo": "amazon-photo/amazon_photo.npz",
}
WITHOUT = {"air-routes": "~label,dist:int,desc:string,city:string,date:string", "larva-connectome": "column 3"}
"""The columns of texts, dates and edges of the tables that have some."""


def accuracy(folder: Path, arguments: list[str]) -> float:
    """The accuracy on test nodes of a model that is trained by one command."""
    with tempfile.TemporaryDirectory() as model:
        command = [sys.executable, "-m", "gcnsl", "train", *arguments, "--json", "-o", f"{model}/model"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["test"]["metrics"]["accuracy"])


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="sage")
    arguments = parser.parse_args()
    print("| graph | all columns | without texts, dates, edge columns | LightGBM |\n| --- | ---: | ---: | ---: |")
    rows = {}
    for name, words in GRAPHS.items():
        given = words.split()
        fewer = given
        if name in WITHOUT:
            fewer = [*given, "--drop", WITHOUT[name]]
        chosen = ["--method", arguments.method]
        trees = ["--method", "boosted-trees", "--set", "hops=0", "--set", "labels=false"]
        row = [accuracy(arguments.folder, given + chosen)]
        row.append(accuracy(arguments.folder, fewer + chosen) if fewer != given else row[0])
        row.append(accuracy(arguments.folder, given + trees))
        rows[name] = row
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in row)} |", flush=True)
    RESULTS.write_text(json.dumps({"method": arguments.method, "accuracies": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
