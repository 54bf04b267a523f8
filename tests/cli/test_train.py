import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from gcnsl import GCNSLClassifier, NodeClassifier, cli
from gcnsl.methods import resolve
from gcnsl.storage import load_folder

from .cases import TRAIN

LONG = (*TRAIN, "--set", "epochs=400", "--set", "patience=400", "--device", "cpu")


def test_the_same_as_json(gcnsl, people, tmp_path, frames) -> None:
    code, out, _ = gcnsl("train", *people, *TRAIN, "--json", "-o", tmp_path / "model")
    report = json.loads(out)
    assert code == 0
    assert report["graph"] == tmp_path.name
    assert report["saved"] == str(tmp_path / "model")
    assert report["epochs"] == report["options"]["epochs"] == 12
    assert sum(report["nodes"].values()) == 80
    assert report["original"]["edges"] == len(frames[1])
    classifier = GCNSLClassifier.load(tmp_path / "model")
    right = classifier.predict() == frames[0]["label"].to_numpy()
    unseen = (classifier.y_ == -1) & frames[0]["label"].notna().to_numpy()
    assert report["nodes"]["test"] == unseen.sum()
    assert report["accuracy"]["test"] == pytest.approx(right[unseen].mean())
    assert report["accuracy"]["train"] == pytest.approx(right[classifier.train_mask_].mean())
    assert report["accuracy"]["val"] == pytest.approx(classifier.history_.best["val_accuracy"])
    learned = classifier.learned_graph().edge_index
    assert report["reconnected"]["edges"] == int((learned[0] < learned[1]).sum())


def test_test_labels_are_not_seen(gcnsl, people, tmp_path, frames) -> None:
    gcnsl("train", *people, *TRAIN, "-o", tmp_path / "model")
    hidden = GCNSLClassifier.load(tmp_path / "model").y_ == -1
    nodes = frames[0].assign(split=np.where(hidden, "", "train"))
    nodes.loc[GCNSLClassifier.load(tmp_path / "model").val_mask_, "split"] = "val"
    told_otherwise = nodes.assign(label=nodes["label"].where(~hidden | nodes["label"].isna(), "red"))
    told_otherwise.to_csv(tmp_path / "nodes.csv", index=False)
    gcnsl("train", *people, *TRAIN, "-o", tmp_path / "other")
    assert same_tensors(tmp_path / "model", tmp_path / "other")


def test_all_labels(gcnsl, people, tmp_path) -> None:
    _, out, _ = gcnsl("train", *people, *TRAIN, "--all-labels", "--json", "-o", tmp_path / "model")
    report = json.loads(out)
    assert report["nodes"]["test"] == 0
    assert report["accuracy"]["test"] is None
    assert (GCNSLClassifier.load(tmp_path / "model").y_ >= 0).sum() == 80
    assert "no node was held back" in gcnsl("train", *people, *TRAIN, "--all-labels")[1]


def test_a_split_of_ones_own(gcnsl, people, tmp_path, frames) -> None:
    split = np.where(np.arange(90) % 3 == 0, "test", "train")
    frames[0].assign(split=np.where(frames[0]["label"].isna(), "", split)).to_csv(tmp_path / "nodes.csv", index=False)
    report = json.loads(gcnsl("train", *people, *TRAIN, "--json")[1])
    assert report["nodes"]["test"] == 26
    assert report["nodes"]["val"] > 0, "drawn from the training nodes, since the column names none"
    other, again = (
        json.loads(gcnsl("train", *people, *TRAIN, "--json", *seed)[1]) for seed in (["--run", 1], ["--seed", 1])
    )
    assert other["nodes"]["test"] == 26, "the same split"
    assert other["test"]["metrics"]["log-loss"] != report["test"]["metrics"]["log-loss"], "with another seed"
    assert again["nodes"] == other["nodes"]


def test_the_metric_and_the_weights_reach_training(gcnsl, people, tmp_path) -> None:
    command = ("train", *people, "--method", "mlp", "--set", "epochs=5", "--json", "-o", tmp_path / "model")
    report = json.loads(gcnsl(*command, "--metric", "macro-f1", "--class-weight", "red=5,blue=2")[1])
    assert report["options"]["monitor"] == "macro-f1"
    assert report["options"]["class_weight"] == '{"blue": 2.0, "red": 5.0}'
    history = NodeClassifier.load(tmp_path / "model").history_
    assert history.best["val_macro-f1"] == max(history["val_macro-f1"])
    chosen = json.loads(gcnsl(*command, "--metric", "macro-f1", "--set", "monitor=loss")[1])["options"]
    assert chosen["monitor"] == "loss"
    by_set = json.loads(gcnsl(*command, "--set", "class_weight={blue = 2, red = 5}")[1])["options"]
    assert by_set["class_weight"] == report["options"]["class_weight"]


def test_named_graphs_have_published_hyperparameters(gcnsl, data_root) -> None:
    command = ("train", "texas", "--root", data_root, "--method", "gcn-sl", "--set", "epochs=2", "--json")
    options = json.loads(gcnsl(*command)[1])["options"]
    assert options == resolve("gcn-sl", benchmark="texas", options={"epochs": 2}).options()
    assert options != resolve("gcn-sl", options={"epochs": 2}).options()
    assert json.loads(gcnsl(*command, "--set", "epsilon=0.6")[1])["options"]["epsilon"] == 0.6


def test_divergence_is_one_line(gcnsl, people) -> None:
    code, out, err = gcnsl("train", *people, *TRAIN, "--set", "lr=1e30")
    assert (code, out) == (cli.BAD_INPUT, "")
    assert re.fullmatch(r"Error: training diverged: .*\n", err)


def test_a_graph_without_labels(gcnsl, people, tmp_path, frames) -> None:
    frames[0].drop(columns="label").to_csv(tmp_path / "nodes.csv", index=False)
    for command in ("train", "compare"):
        code, _, err = gcnsl(command, *people)
        assert code == cli.BAD_INPUT
        assert "the graph has no labels: name the column that holds the classes (--label)" in err


def same_tensors(one, other) -> bool:
    (_, a), (_, b) = load_folder(one), load_folder(other)
    return a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a)


@pytest.mark.slow
def test_killed_and_interrupted_it_ends_with_the_bits_of_an_undisturbed_run(gcnsl, people, tmp_path) -> None:
    output, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    command = ("train", *people, *LONG, "--checkpoint-every", "10", "-o", str(output))
    code, out, err = ended(command, signal.SIGKILL, when=checkpoint.exists)
    assert (code, out, err) == (-signal.SIGKILL, "", "")
    first = checkpoint.stat().st_mtime_ns
    code, out, err = ended(command, signal.SIGTERM, when=lambda: checkpoint.stat().st_mtime_ns > first)
    assert (code, out) == (cli.INTERRUPTED, "")
    assert err.splitlines()[0] == f"Continuing: from {checkpoint}"
    assert err.splitlines()[1] == "Interrupted: saving the best model so far"
    assert err.splitlines()[2].startswith("Interrupted: after epoch ")
    assert f"; {output} is the best model so far, of epoch " in err
    assert err.splitlines()[3] == f"  {shlex.join(['gcnsl', *command])}"
    assert err.count("\n") == 4
    assert NodeClassifier.load(output).history_.stopped == "interrupted"

    code, out, err = gcnsl(*command, "--json")
    assert (code, err) == (0, f"Continuing: from {checkpoint}\n")
    assert json.loads(out)["epochs"] == 400
    assert not checkpoint.exists()
    gcnsl("train", *people, *LONG, "-o", tmp_path / "undisturbed")
    assert same_tensors(output, tmp_path / "undisturbed")


def ended(arguments, end, *, when) -> tuple[int, str, str]:
    """Run the command line in a process of its own and end it with a signal."""
    command = [sys.executable, "-m", "gcnsl", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        while not when() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(end)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err
