"""One chain from tables to predictions and back: what is wrong on the way.

``inspect``, ``train``, a new process that loads the model, ``predict``, a grown graph, ``explain``, ``report``, and
``train`` again, with every result compared with what is true of the graph. Graphs in memory take the same way in
Python. Nothing is raised; whatever is wrong is a :class:`Failure`.
"""

from __future__ import annotations

import html
import json
import os
import random
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from . import tables
from .graphs import FILES, MEMORY, NEW, ChainGraph, grow, make_graph
from .steps import RECORD, Call, Ended, of_changed, run_step, train

FAMILIES = {
    "auto": ("auto",),
    "plain": ("logistic", "boosted-trees", "label-propagation", "twins"),
    "averages": ("gcn", "sage", "gat", "mixhop", "gpr-gnn", "fsgnn"),
    "no or other neighbours": ("mlp", "linkx", "h2gcn-1", "h2gcn-2", "dir-gcn", "acm-gcn"),
    "sorted or structural": ("nlgnn", "geom-gcn"),
    "learned graph": ("gcn-sl-cc", "gcn-sl-av", "gcn-sl-plus"),
}
FAST = ("auto", "logistic", "boosted-trees", "label-propagation", "twins", "gcn", "sage", "mlp", "linkx", "gcn-sl-plus")
"""Methods for graphs of 50,000 nodes."""
METRICS = ("accuracy", "balanced-accuracy", "macro-f1", "roc-auc", "average-precision", "log-loss")
DOCUMENTED = (
    ("geom-gcn", "grow", r"geom-gcn can't take new nodes"),
    ("--all-labels", "evaluate", r"there is nothing to evaluate"),
)
"""What the documentation refuses: a method or option, the step, and how the refusal is recognised."""
_FOREIGN = re.compile(
    r"\b(?!Graph|Blend|Checkpoint|Store|UnknownLabels)[A-Z]\w+Warning\b|Traceback|site-packages|\[LightGBM\]|OMP:"
)


class Failure(NamedTuple):
    """What went wrong in which step."""

    step: str
    what: str


class Outcome(NamedTuple):
    """What is wrong with a chain, and how many calls each of its steps had."""

    failures: list[Failure]
    done: Counter[str]


@dataclass(frozen=True)
class Chain:
    """A graph, a method, and how the command is given.

    ``extras`` are further things to do: ``"page"`` and ``"plot"`` (write them), ``"interrupt"`` (Ctrl-C first); in
    Python ``"no masks"`` (train on a graph without a split), ``"arrays"`` (call ``fit``) and ``"plain"`` (call
    ``fit_graph`` with a graph that the package has not made).
    """

    seed: int
    graph: ChainGraph
    method: str
    options: tuple[str, ...]
    extras: frozenset[str]

    @property
    def kinds(self) -> dict[str, str]:
        """Those of the graph, the method, its family, and the options."""
        family = next(name for name, methods in FAMILIES.items() if self.method in methods)
        options = "|".join(sorted(filter(None, (o.lstrip("-") for o in self.options if o.startswith("--")))))
        return self.graph.kinds | {"method": self.method, "family": family, "options": options}


def make_chain(seed: int, **forced: str) -> Chain:
    """Draw a chain; ``forced`` are kinds of the graph or the ``method``."""
    dice = random.Random(f"chain {seed}")
    method = forced.pop("method", None)
    graph = make_graph(seed, **forced)
    huge = graph.kinds["size"] == "huge"
    known = [name for methods in FAMILIES.values() for name in methods]
    method = method or dice.choice(FAST if huge else known if dice.random() < 0.9 else ["auto"])
    options: list[str] = []
    if method == "auto":
        options += ["--minutes", "0.1" if huge else "0.01", "--quality", dice.choice(("fast", "good"))]
        options += ["--single"] * (dice.random() < 0.25)
        if dice.random() < 0.2:
            options = [o for o in options if o != "--single"] + ["--distil", dice.choice(("mlp", "gcn", "sage"))]
    else:
        options += ["--set", f"epochs={dice.randint(2, 6)}"]
        options += ["--checkpoint-every", "1"] * (dice.random() < 0.2)
    options += ["--all-labels"] * (dice.random() < 0.15)
    options += ["--metric", dice.choice(METRICS)] if dice.random() < 0.2 else []
    options += ["--class-weight", "balanced"] if dice.random() < 0.1 and method not in _UNWEIGHTED else []
    many = graph.kinds["size"] in ("medium", "huge")  # whose nodes take half a minute to explain
    chances = {"interrupt": 0.15, "plot": 0.15, "page": 0.1 if many else 0.5}
    chances |= {"no masks": 0.15, "arrays": 0.4, "plain": 0.4}
    extras = frozenset(name for name, chance in chances.items() if dice.random() < chance)
    return Chain(seed, graph, method, tuple(options), extras)


_UNWEIGHTED = ("label-propagation", "twins")


def run_chain(chain: Chain, *, real: bool = False) -> Outcome:
    """Run a chain; with ``real``, every command is an interpreter of its own."""
    with tempfile.TemporaryDirectory(prefix="chain-", ignore_cleanup_errors=True) as place:
        folder = Path(place, "work")
        folder.mkdir()
        run = _Run(chain, folder, real=real)
        try:
            run.in_python() if chain.graph.kinds["container"] in MEMORY else run.by_commands()
        except Exception:  # a mistake of this program, or an output that it can't read
            run.fail("runner", traceback.format_exc())
        return Outcome(run.failures, run.done)


class _Run:
    """A chain under way, in a folder."""

    def __init__(self, chain: Chain, folder: Path, *, real: bool) -> None:
        self.chain, self.graph, self.folder = chain, chain.graph, folder
        self.failures, self.done = list[Failure](), Counter[str]()
        self._real, self._seconds = real, 900.0 if chain.graph.kinds["size"] == "huge" else 90.0
        self.record, self.model = folder.parent / f"{RECORD}.npz", dict[str, Any]()
        container = self.graph.kinds["container"]
        self.is_text = container in FILES
        self.model_ids = [str(i) for i in self.graph.ids] if self.is_text else self.graph.ids
        if container in ("scipy", "pyg"):  # which have none
            self.model_ids = list(range(len(self.graph.ids)))
        self.classes = sorted(self.graph.classes)
        texts = [str(c) for c in self.classes]
        if self.is_text and not isinstance(self.classes[0], bool):  # integers if all are some, and otherwise text
            integers = all(re.fullmatch(r"-?(0|[1-9]\d*)", text) for text in texts)
            self.classes = [int(text) for text in texts] if integers else texts

    # -- the two ways -----------------------------------------------------------------------------------------

    def by_commands(self) -> None:
        """Take the way of the command line."""
        graph, chain = self.graph, self.chain
        given = tables.write(graph, self.folder)
        named = [*given, *tables.options(graph)]
        advice = self._inspect(named)
        command = [*named, "--method", chain.method, *chain.options, "-o", "model"]
        command += ["--plot", "quality.png"] * ("plot" in chain.extras)
        page = ["--report", "page.html"] * ("page" in chain.extras)
        if "interrupt" in chain.extras:
            self.do([("interrupt", (interrupted_train, chain.seed % 50 / 100, *command))], codes=(0, 130))
        (said,) = self.do([("train", self._train(*command, *page))])
        if said is None:
            return
        if "page" in chain.extras:
            self._check_page("train", self.folder / "page.html", said.out)
        for_model = [*given, *tables.options(graph, for_model=True)]
        shown = self.do_with_model(for_model, advice, said.out)
        if "load" in shown:
            self._check_accuracy(said.out)
            self._check_evaluation(shown.get("evaluate"), said.out)
            self._check_grown()
        (again,) = self.do([("again", self._train(*command))])
        if again is not None and chain.method != "auto" and "load" in shown and not self._real:
            self._check_same("again", self._recorded(), "the same command made a model with")
        self._check_folder()

    def _train(self, *arguments: str) -> Call:
        return ["train", *arguments] if self._real else (train, *arguments)

    def in_python(self) -> None:
        """Take the way of Python, and then give the saved model to commands."""
        (fitted,) = self.do([("fit", (fit, self.chain))])
        if fitted is None:
            return
        self._check_values("fit", fitted.value)
        np.savez(self.record, proba=fitted.value["proba"], changed=fitted.value["changed"])
        shown = self.do_with_model([], [], "")
        if "load" not in shown:
            return
        for name in ("classes", "predicted"):
            if self.model[name] != fitted.value[name]:
                self.fail("load", f"{name} changed from {_few(fitted.value[name])} to {_few(self.model[name])}")
        if shown.get("grow") is not None:
            self._check_probabilities("grow", shown["grow"].value, len(self.graph.ids) + NEW)

    def do_with_model(self, for_model: list[str], advice: list[list[str]], said: str) -> dict[str, Ended]:
        """All that a model is for, in one new process; the last call of each step as it ended, if it did well."""
        ids, dice = self.model_ids, random.Random(self.chain.seed)
        calls: list[tuple[str, Call]] = [("load", (load,))]
        calls += [("predict", ["predict", "model", "--proba", "-o", f"out.{end}"]) for end in ("csv", "parquet", "tsv")]
        calls += [("decide", ["predict", "model", *self._decisions(), "-o", "decided.parquet"])]
        calls += [("next", command) for command in _next_commands(said)] + [("advice", each) for each in advice]
        if for_model:
            calls += [("evaluate", ["predict", "model", *for_model, "--evaluate", "-o", "same.csv"])]
            for step, grown in self._grown().items():
                more = [*tables.write(grown, self.folder, f"{step}-"), *tables.options(grown, for_model=True)]
                calls += [(step, ["predict", "model", *more, "--proba", "-o", f"{step}.parquet"])]
        else:
            calls += [("grow", (predict_grown, self.chain))]
        alone = next((i for i in range(len(ids)) if not self.graph.degrees[i]), 0)
        nodes = {dice.randrange(len(ids)): "explain", alone: "explain alone"}
        for node, step in nodes.items():
            name = ["--"] * str(ids[node]).startswith("-") + [str(ids[node])]
            page = ["--report", "node.html"] * ("plot" in self.chain.extras)
            calls += [
                (f"{step}: text", ["explain", *page, "model", *name]),
                (step, ["explain", "--json", "model", *name]),
            ]
        page = ["-o", "page2.html", "--seconds", "0.1"]
        calls += [
            ("report: text", ["report", "model", *page]),
            ("report", ["report", "model", *for_model, *page, "--json"]),
        ]
        ended = self.do(calls)
        shown = {name: each for (name, _), each in zip(calls, ended, strict=True) if each is not None}
        if "load" in shown:
            self.model = shown["load"].value
            self._check_values("load", self.model)
            if not self._real:
                with np.load(self.record, allow_pickle=True) as before:
                    self._check_same("load", before["proba"], "before it was saved, the model had")
                    if not np.array_equal(before["changed"], self.model["changed"]):
                        self.fail("load", "without an edge, the model that was saved has other probabilities")
            self._check_predictions()
            self._check_decisions(shown.get("decide"))
            for node, step in nodes.items():
                self._check_explanation(node, shown.get(step), shown.get(f"{step}: text"))
            self._check_report(shown.get("report"))
        return shown

    # -- calls ------------------------------------------------------------------------------------------------

    def do(self, calls: list[tuple[str, Call]], codes: tuple[int, ...] = (0,)) -> list[Ended | None]:
        """Do calls in a new process, each as it ended; ``None`` for one that did not end well."""
        good: list[Ended | None] = []
        done = run_step([call for _, call in calls], self.folder, self._seconds, real=self._real)
        for (name, call), ended in zip(calls, done, strict=False):
            self.done[name.partition(":")[0]] += 1
            value = ended.value if isinstance(ended.value, int) else 0
            code = ended.code or value
            if code not in codes:
                told = f"{ended.code}\n{ended.err}" if isinstance(ended.code, str) else ended.err or ended.out
                if not self._is_documented(name, told):
                    how = "" if isinstance(ended.code, str) else f"exit code {code}: "
                    self.fail(name, f"{_shown(call)}: {how}{told.strip()}")
            else:
                self._check_talk(name, ended)
            good.append(ended if code in codes else None)
        return good + [None] * (len(calls) - len(good))

    def fail(self, step: str, what: str) -> None:
        """Note a failure; the same error in several steps is one."""
        error = what.rpartition("Error: ")[2][:60]
        if not any(failure.what.rpartition("Error: ")[2][:60] == error for failure in self.failures):
            self.failures.append(Failure(step.partition(":")[0], what))

    def _is_documented(self, step: str, told: str) -> bool:
        about = (self.chain.method, *self.chain.options, "any")
        return any(who in about and step == where and re.search(how, told) for who, where, how in DOCUMENTED)

    # -- checks -----------------------------------------------------------------------------------------------

    def _check_talk(self, step: str, ended: Ended) -> None:
        """Nothing on stderr but what the package says; no traceback; nothing left behind."""
        found = _FOREIGN.search(ended.err)
        if found:
            self.fail(step, f"leaked: {ended.err}")
        elif "left in the temporary folder" in ended.err:
            self.fail(step, ended.err[ended.err.index("left in the temporary") :])

    def _inspect(self, named: list[str]) -> list[list[str]]:
        """Look at the graph, and return the commands that follow the advice that was given."""
        graph, plot = self.graph, ["--plot", "graph.png"] * ("plot" in self.chain.extras)
        text, said = self.do([("inspect", ["inspect", *named, *plot]), ("inspect", ["inspect", *named, "--json"])])
        if said is None or text is None:
            return []
        found, joined = json.loads(said.out), graph.joined
        loops = sum(a == b for a, b in joined)
        expected: dict[str, Any] = {
            "nodes": len(graph.ids),
            "edges": len(joined),
            "loops": loops,
            "classes": {str(c): count for c, count in graph.classes.items()},
            "unlabelled": sum(label is None for label in graph.labels),
            "isolated_nodes": graph.isolated,
            "arcs": len(set(graph.ends)) if graph.directed else None,
        }
        for name, value in expected.items():
            if found[name] != value:
                self.fail("inspect", f"{name} is {str(found[name])[:200]}, truly {str(value)[:200]}")
        homophily = found["homophily"]["edge"]
        if (homophily is None) != (graph.homophily is None) or abs((homophily or 0) - (graph.homophily or 0)) > 1e-4:
            self.fail("inspect", f"homophily is {homophily}, truly {graph.homophily} (without {loops} loops)")
        for column in found["columns"]:
            if column["table"] != "nodes":
                continue
            missing = int(graph.nodes[column["name"]].isna().sum()) if column["name"] in graph.nodes else -1
            if column["missing"] != missing:
                self.fail(
                    "inspect", f"column {column['name']!r} has {column['missing']} missing values, truly {missing}"
                )
        for name in ("nodes", "edges", "isolated_nodes"):
            if f"{expected[name]:,}" not in text.out:
                self.fail("inspect", f"the text lacks the number of {name}, {expected[name]:,}")
        unknown = {"minus one is unknown": "-1", "NA is unknown": "NA"}.get(graph.kinds["labels"])
        if unknown and expected["unlabelled"] and not re.search(rf"{unknown}\b.*unknown", text.out + text.err):
            self.fail("inspect", f"it does not say that {unknown} counts as unknown")
        advice = re.findall(r"^\?.*\((--(?:drop|categorical|numeric) .*)\)$", text.out, re.M)
        return [["inspect", *named, *_words(each)] for each in advice if "..." not in each]

    def _check_values(self, step: str, found: dict[str, Any]) -> None:
        """Classes as the user gave them, in their types, none too many; probabilities that are some."""
        if {(c, type(c)) for c in found["classes"]} != {(c, type(c)) for c in self.classes}:
            self.fail(step, f"classes are {_few(found['classes'])}, truly {_few(self.classes)}")
        self._check_probabilities(step, found["proba"], len(self.graph.ids))

    def _check_probabilities(self, step: str, proba: np.ndarray, rows: int) -> None:
        if proba.shape != (rows, len(self.classes)):
            self.fail(step, f"probabilities of shape {proba.shape} for {rows} nodes and {len(self.classes)} classes")
        elif not np.isfinite(proba).all() or np.abs(proba.sum(axis=1) - 1).max() > 1e-4 or proba.min() < 0:
            self.fail(step, f"no probabilities: {proba[np.abs(proba.sum(axis=1) - 1).argmax()]}")

    def _check_same(self, step: str, proba: np.ndarray, who: str) -> None:
        """Probabilities are those of the loaded model, bit for bit."""
        own = self.model["proba"]
        if not np.array_equal(own, proba):
            by = float(np.abs(own - proba).max()) if own.shape == proba.shape else f"shape {proba.shape}"
            self.fail(step, f"{who} other probabilities, by up to {by}")

    def _recorded(self) -> np.ndarray:
        with np.load(self.record) as found:
            return found["proba"]

    def _check_accuracy(self, said: str) -> None:
        """The accuracy that is printed, against the labels that the model has not seen."""
        told = re.search(r"test accuracy\s*│\s*(\S+)", said)
        split = self.graph.nodes.get(self.graph.options.get("split", ["split"])[0])
        parts = ["test"] * len(self.graph.ids) if split is None else split.tolist()
        rows = zip(self.model["predicted"], self.graph.labels, self.model["known"], parts, strict=True)
        right = [
            str(p) == str(label) for p, label, known, part in rows if label is not None and not known and part == "test"
        ]
        expected = f"{np.mean(right):.1%}" if right else "–"
        if told is None or told[1] != expected:
            self.fail(
                "train", f"test accuracy is printed as {told and told[1]}, truly {expected} of {len(right)} nodes"
            )

    def _check_predictions(self) -> None:
        """Predictions in files: ids, order, classes and types, and what a user compares them with."""
        if not all((self.folder / f"out.{end}").exists() for end in ("csv", "parquet")):
            return
        text, typed = tables.read_text(self.folder / "out.csv"), pd.read_parquet(self.folder / "out.parquet")
        ids, predicted = self.model_ids, self.model["predicted"]
        if text["id"].tolist() != [str(i) for i in ids] or typed["id"].tolist() != ids:
            self.fail(
                "predict", f"ids are {_few(typed['id'])} in Parquet, {_few(text['id'])} in CSV, truly {_few(ids)}"
            )
        if text["predicted"].tolist() != [str(p) for p in predicted] or typed["predicted"].tolist() != predicted:
            found = f"{_few(typed['predicted'])} in Parquet, {_few(text['predicted'])} in CSV"
            self.fail("predict", f"predictions are {found}, and {_few(predicted)} in Python")
        self._check_same("predict", _probabilities(typed), "the file has")
        if self.graph.kinds["container"] not in MEMORY and "NA" not in self.classes:  # which pandas reads as a gap
            path = next(path for path in self.folder.iterdir() if path.name.startswith("nodes."))
            output = self.folder / ("out.csv" if self.is_text else "out.parquet")
            given, found = tables.read(path)[self.graph.options.get("label", "label")], tables.read(output)["predicted"]
            agree = sum(given.notna() & (given.astype(object) == found.astype(object)))
            right = sum(str(p) == str(label) for p, label in zip(predicted, self.graph.labels, strict=True))
            if agree != right:
                self.fail(
                    "predict", f"(predicted == label).sum() is {agree}, truly {right}; classes are {_few(self.classes)}"
                )

    def _decisions(self) -> list[str]:
        """Options that decide on a class against the rest, and ask for sets of classes."""
        dice = random.Random(self.chain.seed)
        rule = dice.choice(("f1", "precision=.9", "recall=.8", "top=5", "cost=fn:10,fp:1", "0.3"))
        positive = f"--positive={dice.choice(self.classes)}"
        return [f"--threshold={rule}", positive, f"--coverage={dice.choice(('.8', '.9', '.95'))}"]

    def _check_decisions(self, ended: Ended | None) -> None:
        """Sets have classes of the model, and what each node was for is said as the model knows it."""
        if ended is None:
            return
        found = pd.read_parquet(self.folder / "decided.parquet")
        texts = {str(c) for c in self.classes}
        if not all(set(held) <= texts for held in found["set"]) or (found["set"].map(len) != found["set_size"]).any():
            self.fail("decide", "a set holds what is no class, or has another size than is said")
        learned = found["used_for"].isin(["training", "validation"]).tolist()
        if learned != self.model["known"]:
            self.fail(
                "decide", f"{sum(learned)} nodes were for training or validation, truly {sum(self.model['known'])}"
            )

    def _check_evaluation(self, ended: Ended | None, said: str) -> None:
        if ended is None:
            return
        if tables.read_text(self.folder / "same.csv")["predicted"].tolist() != [
            str(p) for p in self.model["predicted"]
        ]:
            self.fail("evaluate", "predictions for the same tables are others than without tables")
        told = [re.search(r"test accuracy\s*│\s*([\d.]+)", text) for text in (said, ended.out)]
        if not {"split", "first"} & set(self.graph.nodes) and told[0] and told[1] and told[0][1] != told[1][1]:
            self.fail("evaluate", f"accuracy {told[1][1]}, but train has said {told[0][1]}")

    def _grown(self) -> dict[str, ChainGraph]:
        return {step: grow(self.graph, more=step == "grow") for step in ("shuffle", "grow")}

    def _check_grown(self) -> None:
        for step, grown in self._grown().items():
            path = self.folder / f"{step}.parquet"
            if not path.exists():
                continue
            found, ids = pd.read_parquet(path), [str(i) for i in grown.ids] if self.is_text else grown.ids
            if found["id"].tolist() != ids:
                self.fail(step, f"ids are {_few(found['id'])}, truly {_few(ids)}")
            proba = _probabilities(found)
            self._check_probabilities(step, proba, len(ids))
            if step == "shuffle":
                place = {node: row for row, node in enumerate(ids)}
                self._check_same(step, proba[[place[node] for node in self.model_ids]], "shuffled rows have")

    def _check_explanation(self, node: int, said: Ended | None, text: Ended | None) -> None:
        if said is None or text is None:
            return
        found, predicted = json.loads(said.out), self.model["predicted"][node]
        neighbours = self.graph.degrees[node]
        if found["node"]["predicted"] != predicted:
            self.fail("explain", f"class {found['node']['predicted']!r}, truly {predicted!r}")
        if abs(sum(found["probabilities"].values()) - 1) > 1e-4:
            self.fail("explain", f"probabilities {found['probabilities']}")
        if found["original"]["count"] != neighbours:
            self.fail("explain", f"{found['original']['count']} neighbours, truly {neighbours}")
        if str(predicted) not in text.out:
            self.fail("explain", f"the text lacks the class {predicted!r}")

    def _check_report(self, said: Ended | None) -> None:
        if said is not None:
            self._check_page("report", self.folder / "page2.html", "")
            if not 0 <= json.loads(said.out)["metrics"]["accuracy"] <= 1:
                self.fail("report", f"accuracy {json.loads(said.out)['metrics']['accuracy']}")

    def _check_page(self, step: str, page: Path, said: str) -> None:
        """The page has the classes, and every figure that the terminal has shown."""
        content = page.read_text(encoding="utf-8")
        plain = html.unescape(content)
        missing = [c for c in map(str, self.classes) if c not in plain and json.dumps(c)[1:-1] not in plain]
        if missing:
            self.fail(step, f"the page lacks the class {missing[0]!r}")
        for metric, value in re.findall(r"test ([a-z-]+)\s*│\s*([\d.]+%?)", said):
            if metric != "nodes" and value not in content:
                self.fail(step, f"the page lacks test {metric} {value}")

    def _check_folder(self) -> None:
        """Nothing is left beside the model."""
        known = r"(shuffle-|grow-)?(nodes|edges)\..*|model|(shuffle|grow|same|out|decided|predictions)\.\w+"
        known += r"|(page|page2)\.html|node\.html|(graph|quality)\.png"
        left = [path.name for path in self.folder.iterdir() if not re.fullmatch(known, path.name)]
        if left:
            self.fail("again", f"left beside the model: {sorted(left)}")


def _next_commands(said: str) -> list[list[str]]:
    """The commands that ``train`` has named as the next ones."""
    commands = said.partition("\nNext:")[2].split("\n  gcnsl ")[1:]
    return [_words(command) for command in commands]


def _words(command: str) -> list[str]:
    """The words of a command as bash reads them."""
    if "$'" not in command:
        return shlex.split(command)
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return told.stdout.decode().split("\0")[:-1]


# --- what runs in processes of its own ---------------------------------------------------------------------------


def load() -> dict[str, Any]:
    """What a model that was just loaded says."""
    from gcnsl import NodeClassifier

    return _values(NodeClassifier.load("model"))


def _values(classifier: Any) -> dict[str, Any]:
    return {
        "classes": classifier.classes_.tolist(),
        "predicted": classifier.predict().tolist(),
        "proba": classifier.predict_proba(),
        "changed": of_changed(classifier),
        "known": (classifier.y_ >= 0).tolist(),
    }


def interrupted_train(delay: float, *arguments: str) -> int:
    """``gcnsl train`` with a Ctrl-C after so many seconds; one that comes before the command has begun is lost."""
    signal.signal(signal.SIGINT, lambda *_: None)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return train(*arguments)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        timer.cancel()


def _classifier(chain: Chain) -> Any:
    from gcnsl import NodeClassifier

    given = dict(zip(chain.options[::2], chain.options[1::2], strict=False))  # the first two are always there
    if chain.method == "auto":
        return NodeClassifier("auto", minutes=float(given["--minutes"]), random_state=0)
    return NodeClassifier(chain.method, epochs=int(given["--set"].removeprefix("epochs=")), random_state=0)


def fit(chain: Chain) -> dict[str, Any]:
    """Fit and save the classifier of a chain in memory."""
    from gcnsl.datasets import with_random_split

    graph, classifier = chain.graph, _classifier(chain)
    kind = graph.kinds["container"]
    if kind in ("scipy", "pyg") and "arrays" in chain.extras:
        weight = graph.edges.get("weight")
        classifier.fit(
            tables.features(graph),
            tables.label_array(graph),
            edge_index=np.array(graph.ends, dtype=int).reshape(-1, 2).T,
            edge_weight=None if weight is None else weight.to_numpy(),
            directed=graph.directed,
        )
    else:
        plain = kind == "pyg" and "plain" in chain.extras and not graph.directed
        data = tables.plain_data(graph) if plain else tables.in_memory(graph)
        if not plain and "no masks" not in chain.extras and "train_mask" not in data:
            data = with_random_split(data)
        classifier.fit_graph(data)
    values = _values(classifier)
    classifier.save("model")
    return values


def predict_grown(chain: Chain) -> Any:
    """Probabilities of the nodes of a grown graph in memory, in its order."""
    import gcnsl

    classifier, kind = gcnsl.NodeClassifier.load("model"), chain.graph.kinds["container"]
    grown = grow(chain.graph)
    if kind in ("scipy", "pyg"):  # without ids, old nodes come first, in their order
        order = [*map(grown.ids.index, chain.graph.ids), *map(grown.ids.index, chain.graph.spare)]
        place = {old: new for new, old in enumerate(order)}
        x, weight = tables.features(grown), grown.edges.get("weight")
        x = np.empty((len(order), 0)) if x is None else x[order]
        x = x.toarray() if kind == "pyg" and grown.x is not None else x
        ends = np.array([(place[a], place[b]) for a, b in grown.ends], dtype=int).reshape(-1, 2).T
        return classifier.predict_proba(x, edge_index=ends, edge_weight=None if weight is None else weight.to_numpy())
    if kind == "networkx":
        return classifier.predict_proba_graph(tables.in_memory(grown))
    kept = {k: v for k, v in grown.options.items() if k not in ("split", "fold", "categorical", "drop")}
    return classifier.predict_proba_graph(
        gcnsl.from_tables(grown.nodes, grown.edges, encoder=classifier.encoder_, **kept)
    )


# --- small things ------------------------------------------------------------------------------------------------


def _probabilities(predictions: pd.DataFrame) -> np.ndarray:
    """The probabilities of the classes (n × C) in a file of predictions."""
    return predictions[[name for name in predictions if name.startswith("probability_")]].to_numpy()


def _few(values: Any) -> str:
    return repr(list(values)[:4])


def _shown(call: Call) -> str:
    return shlex.join(["gcnsl", *call]) if isinstance(call, list) else f"{call[0].__name__}"
