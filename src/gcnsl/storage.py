"""Models on disk: a folder with one safetensors file, whose metadata hold the configuration as JSON. No pickles.

The metadata also name the format and the version, and the SHA-256 of the tensors and of themselves, so that damage is
noticed. The file is replaced at once: a folder has a whole model at every moment, and neither savers nor readers lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from gcnsl.errors import InputError
from gcnsl.files import PART, atomic_write, digest, tensor_bytes, writing
from gcnsl.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

_Load = Callable[[bytes], dict[str, "Tensor"]]
FORMAT, FILE, KEY = 3, "classifier.safetensors", "gcnsl"
_LONGEST_HEADER = 100_000_000
"""In bytes; safetensors refuses longer ones."""
FILE_OF_0_2 = "tensors.safetensors"
"""A file of a model that version 0.2.0 or 0.1.0 saved."""


def save_folder(
    path: str | os.PathLike[str], config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, overwrite: bool = True
) -> None:
    """Write the folder of a model, or replace the model in it.

    Of several processes that save in the same folder, the last one wins. A folder with anything other than a model is
    left untouched. If it can't be written, nothing is left behind, and an older model is as it was.

    Args:
        path: The folder, or a link to it; missing parents are created.
        config: Plain values, for JSON.
        tensors: Tensors by name, on any device.
        overwrite: Whether an older model may be replaced.
    """
    path = Path(path)
    check_place(path, overwrite=overwrite)
    document = {"format": FORMAT, "gcnsl": __version__, "config": config}
    signed = json.dumps(document | {"sha256": checksum(document, tensors)})
    with writing(path):
        atomic_write(path / FILE, tensor_bytes(tensors, {KEY: signed}))


def check_place(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise the error that :func:`save_folder` would raise for this path because of what is there."""
    path = Path(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file: give the name of a folder for the model")
    names = {entry.name for entry in path.iterdir() if not entry.name.endswith(PART)}
    if names - {FILE}:
        raise InputError(f"{path} holds something other than a model: give another folder")
    if names and not overwrite:
        raise InputError(f"{path} exists: allow overwriting, or give another folder")


def check_model(path: str | os.PathLike[str]) -> None:
    """Raise the error that :func:`load_folder` would raise, as far as the metadata tell; torch is not loaded."""
    _read(path)


def load_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors, on the CPU, of a saved model; checked before anything is used."""
    from safetensors.torch import load

    config, tensors = _read(path, load)
    # Results of linear algebra may depend on where in memory a tensor begins, which clone() aligns.
    return config, {name: tensor.clone() for name, tensor in tensors.items()}


def _read(path: str | os.PathLike[str], load: _Load | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and, if it is said how to load them, the tensors."""
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        raise InputError(f"{path} is not a folder: give the folder of a saved model")
    try:
        with (path / FILE).open("rb") as file:
            length = min(int.from_bytes(file.read(8), "little"), _LONGEST_HEADER)
            document = json.loads(json.loads(file.read(length))["__metadata__"][KEY])
            file.seek(0)
            content = file.read() if load else b""
        if document["format"] != FORMAT:
            raise InputError(
                f"{path} was written by gcnsl {document['gcnsl']} in format {document['format']}, but gcnsl "
                f"{__version__} reads format {FORMAT}: install a newer gcnsl"
            )
        tensors, expected = load(content) if load else {}, document.pop("sha256")
        if load and checksum(document, tensors) != expected:
            raise ValueError("it is not what was saved")
        return document["config"], tensors
    except FileNotFoundError as error:
        if (path / FILE_OF_0_2).exists():
            remedy = "load it and predict with gcnsl 0.2, or train and save it again"
            raise InputError(f"{path} was saved by gcnsl 0.2 or older: {remedy}") from error
        raise _damaged(path, f"it has no file {Path(error.filename).name}") from error
    except InputError:
        raise
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(path, f"it can't be read ({error})") from error


def checksum(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of all that is stored."""
    return digest(tensors, {KEY: json.dumps(document)})


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is not a complete model: {why}; restore it from a copy, or train and save it again")


def pack_strings(strings: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Strings as two tensors: the concatenated UTF-8 bytes (uint8), and the offsets of the strings (n + 1)."""
    import torch

    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = torch.tensor([0, *map(len, encoded)]).cumsum(0)
    return torch.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), dtype=torch.uint8)[: int(ends[-1])], ends


def unpack_strings(content: Tensor, ends: Tensor) -> list[str]:
    """The strings that were given to :func:`pack_strings`."""
    raw, places = content.numpy().tobytes(), ends.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
