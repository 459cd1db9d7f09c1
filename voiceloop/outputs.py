"""Files that commands write beside what they print: what they may not be, and how they appear.

Nothing that a command reads is ever written over, and a file appears only once it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TextIO

from voiceloop.errors import VoiceloopError


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
    """A JSON file that takes the place of `path` if all goes well, and of nothing if not.

    Raises VoiceloopError where it cannot be written, or its name does not end in `.json`: by
    mistake it may be that of a recording.
    """
    target = path.resolve()  # a link is followed, so that it stays one
    part = target.with_name(f".{target.name}.part")
    if path.suffix.lower() != ".json":
        raise VoiceloopError(f"{path} is not the name of a JSON file", f"name it {path}.json")
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        file = part.open("w", encoding="utf-8")
    except OSError as error:
        raise VoiceloopError(
            f"{path} cannot be written: {error.strerror}",
            "choose a file in a folder that exists and that you may write to",
        ) from error
    try:
        with file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
