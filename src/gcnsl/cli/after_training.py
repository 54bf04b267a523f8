"""What follows training on the command line: a model that was interrupted, and the commands that come next."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gcnsl.cli.console import out, say
from gcnsl.cli.model_saving import save_model
from gcnsl.errors import Interrupted

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier


def say_if_interrupted(classifier: "NodeClassifier") -> None:
    """Remind the user of a model that its training can be continued."""
    if classifier.history_.stopped == "interrupted":
        epochs = f" after epoch {len(classifier.history_)}" if len(classifier.history_) else ""
        when = f"training was interrupted{epochs}"
        say("Note", f"{when}; this is the best model until then, and the same `gcnsl train` completes it", "yellow")


def save_so_far(classifier: "NodeClassifier", interruption: Interrupted, output: Path | None, *, spared: bool) -> str:
    """Save the best model so far, unless an older one is to be spared; say so, and how to continue."""
    from gcnsl.training.interruption import Interruption

    when = str(interruption).partition(";")[0]
    if output is None:
        return f"{when}; nothing was saved: -o FOLDER saves the best model so far"
    saved = f"{output} is still the older model" if spared else "there is no model yet"
    if interruption.so_far is not None and not spared:
        say("Interrupted", "saving the best model so far", "yellow")
        with Interruption() as further:
            further.ignore_further()
            save_model(classifier, output)
        epoch = classifier.history_.best_epoch
        saved = f"{output} is the best model so far{f', of epoch {epoch}' if epoch else ''}"
    again = "This continues" if output.with_name(f"{output.name}.checkpoint").exists() else "This begins anew"
    return f"{when}; {saved}. {again}:\n  {shlex.join(['gcnsl', *sys.argv[1:]])}"


def print_next(classifier: "NodeClassifier", model: str) -> None:
    """Name the commands that come next, ready to be copied."""
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown]
    commands = (f"predict {model} -o predictions.csv", f"explain {model} {shlex.quote(str(node))}")
    say("Next", "".join(f"\n  gcnsl {command}" for command in commands), "bold", where=out)
