"""Files that commands write beside what they print: what they may not be, and how they appear.

Nothing that a command reads is ever written over, and a file appears only once it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter, TextIOWrapper
from itertools import combinations
from pathlib import Path
from typing import TextIO, cast

from voiceloop.errors import VoiceloopError

MAKER = "voiceloop"
"""What a file that was written here says of who made it."""


def keep(inputs: Iterable[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise VoiceloopError where an output, named by its option, is one of the `inputs`, or two
    outputs are one file: by another spelling, a symbolic link or a hard link too."""
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        if any(read is not None and _same(read, path) for read in inputs):
            raise VoiceloopError(
                f"{option} {path} is read by this command and would be written over",
                "choose another name",
            )
    for (option, path), (other, second) in combinations(given.items(), 2):
        if _same(path, second):
            raise VoiceloopError(
                f"{option} and {other} name the same file, {path}", "choose two names"
            )


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there yet, or cannot be looked at
        return one.resolve() == other.resolve()


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A trace that takes the place of `path` if all goes well, and of nothing if not.

    Raises VoiceloopError where it cannot be written, its name does not end in `.json`, or it is
    somebody else's file: by mistake the name may be that of anything.
    """
    target = path.resolve()  # a link is followed, so that it stays one
    if path.suffix.lower() != ".json":
        raise VoiceloopError(f"{path} is not the name of a JSON file", f"name it {path}.json")
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if not _is_trace(target):
            raise VoiceloopError(
                f"{path} exists and was not made by voiceloop",
                "choose another name, or move the file away first",
            )
        part = part_beside(target)
    except OSError as error:
        raise VoiceloopError(
            f"{path} cannot be written: {error.strerror}",
            "choose a file in a folder that exists and that you may write to",
        ) from error
    try:
        with TextIOWrapper(part, encoding="utf-8") as file:
            yield file
        Path(part.name).replace(target)
    finally:
        Path(part.name).unlink(missing_ok=True)


def part_beside(target: Path, buffering: int = -1) -> BufferedWriter:
    """A new file in the folder of `target`, to be written and then to take its place; its `name`
    is its path. Raises OSError.

    Nothing that is there is opened, and no link is followed, which somebody else may have put into
    a folder that others write to.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)  # of a process that had this number before
    return cast("BufferedWriter", part.open("xb", buffering))


def _is_trace(path: Path) -> bool:
    """Whether nothing of anybody's is lost with a file: it is not there, or is empty, or a trace
    that was written here, or one without events."""
    if not path.exists() or not path.stat().st_size:
        return True
    try:
        events = json.loads(path.read_bytes())["traceEvents"]
        return not events or events[0]["args"]["name"] == MAKER
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
