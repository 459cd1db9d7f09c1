"""Writes the output files of commands safely.

A command never overwrites its own input, and a trace appears only once it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BufferedWriter, TextIOWrapper
from itertools import combinations
from pathlib import Path
from typing import TextIO, cast

from voiceloop.errors import VoiceloopError

MAKER = "voiceloop"
"""The name in a trace file by which this module recognises that voiceloop wrote the file."""


def keep(inputs: Iterable[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise VoiceloopError if an output is one of the `inputs`, or two outputs are the same file.

    `outputs` maps each option, such as `--out`, to its path. Other spellings, symbolic links and
    hard links of a file count as the same file.
    """
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
    except OSError:  # one of them does not exist or is not accessible
        return one.resolve() == other.resolve()


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a new trace file, which replaces `path` when the context ends without an error.

    Raises VoiceloopError if it cannot be written, if the name does not end in `.json`, or if `path`
    exists and is no trace of voiceloop: the name may be a mistake.
    """
    target = path.resolve()  # replaces the target of a link, so the link stays a link
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


def part_beside(target: Path, buffering: int = -1, *, mode: int = 0o666) -> BufferedWriter:
    """Create a file in the folder of `target`, which can replace `target` once it is written.

    The `name` of the returned file is its path, and `buffering` is that of `open`. `mode` is its
    mode, from which the umask is taken. No existing file is opened and no link is followed: in a
    shared folder, another user may have made a file or a link with this name. Raises OSError.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)  # left by an earlier process with the same id
    opened = open(part, "xb", buffering, opener=partial(os.open, mode=mode))
    return cast("BufferedWriter", opened)


def _is_trace(path: Path) -> bool:
    """Return whether a file may be replaced.

    It may if it does not exist, is empty, or is a trace that voiceloop made or that has no events.
    """
    if not path.exists() or not path.stat().st_size:
        return True
    try:
        events = json.loads(path.read_bytes())["traceEvents"]
        return not events or events[0]["args"]["name"] == MAKER
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
