"""Converts the voices of Piper, once: a voice becomes two graphs, so that its vocoder can run in
windows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from voiceloop.catalog.store import explained
from voiceloop.errors import MissingExtra, ModelCorrupt, ModelNotFound, OutOfMemory

FIRST_HALF, VOCODER, VOICE = "voice.onnx", "vocoder.onnx", "voice.json"
"""File names of a converted Piper voice: the graph up to the vocoder's input, the vocoder, and the
description."""


def require() -> None:
    """Raise MissingExtra unless the package that a conversion needs is installed."""
    if not find_spec("onnx"):
        raise MissingExtra("what converts voices of Piper", "convert")


def split_piper(file: Path, target: Path) -> None:
    """Split the graph of a Piper voice into two, up to the vocoder's input and the vocoder, in the
    folder `target`.

    Raises MissingExtra, ModelCorrupt for a file that cannot be read, ModelNotFound if the voice
    lacks its JSON file, OutOfMemory, and VoiceloopError if the disk is full.
    """
    require()
    import onnx

    from voiceloop.catalog.piper import split

    description = Path(f"{file}.json")
    if not description.is_file():
        raise ModelNotFound(
            f"{file.name} is a voice, and {description.name} is not beside it",
            "copy both: they are published together",
        )
    with _readable(file):
        first, vocoder = split(onnx.load(file))
    with explained(target):
        target.mkdir(exist_ok=True)
        onnx.save(first, target / FIRST_HALF)
        onnx.save(vocoder, target / VOCODER)
        shutil.copyfile(description, target / VOICE)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn errors of reading a file into OutOfMemory or ModelCorrupt, with one line each."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(
            f"{file.name} does not fit into memory", "choose a smaller model"
        ) from error
    except Exception as error:  # readers of foreign files raise anything
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelCorrupt(
            f"{file.name} is damaged, or of a kind that is not known: {said}",
            "copy or download it again",
        ) from error
