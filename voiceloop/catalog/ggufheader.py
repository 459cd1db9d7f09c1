"""Reads the settings at the beginning of a GGUF file, within the bounds of the file.

Other readers trust the length that a file gives for an array, and would work for days on an array
of 2**60 entries. So this module reads the file first. The format is that of ggml's docs/gguf.md.
"""

from __future__ import annotations

import struct
from mmap import ACCESS_READ, mmap
from pathlib import Path

_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Formats of `struct` for the types of settings that are numbers."""
_TEXT, _ARRAY = 8, 9
MOST_SETTINGS, MOST_TENSORS, MOST_ENTRIES = 1 << 16, 1 << 17, 1 << 21
"""Maximum number of settings, of tensors, and of entries in an array. No model comes near them."""

Setting = str | int | float


def read_settings(file: Path) -> dict[str, Setting]:
    """Return the settings of a GGUF file by name, without those that are arrays.

    Raises ValueError for a file without a valid header of GGUF, and OSError.
    """
    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ValueError("it is no GGUF file")
        with mmap(opened.fileno(), 0, access=ACCESS_READ) as view:
            try:
                return _HeaderReader(view).settings()
            except struct.error as error:
                raise ValueError("it ends within its header") from error


class _HeaderReader:
    """A reader that goes through a header from its beginning."""

    def __init__(self, view: mmap) -> None:
        self._view, self._at, self._order = view, 4, "<"
        if self._number("I") >= 1 << 16:  # a version this large has the wrong byte order
            self._order = ">"

    def settings(self) -> dict[str, Setting]:
        self._count(MOST_TENSORS)
        count = self._count(MOST_SETTINGS)
        found: dict[str, Setting] = {}
        for _ in range(count):
            name, kind = self._text(), int(self._number("I"))
            if kind == _ARRAY:
                self._pass_array()
            else:
                found[name] = self._text() if kind == _TEXT else self._number(_format(kind))
        return found

    def _number(self, form: str) -> int | float:
        (value,) = struct.unpack_from(self._order + form, self._view, self._at)
        self._at += struct.calcsize(self._order + form)
        return value

    def _count(self, most: int) -> int:
        count = int(self._number("Q"))
        if count > most:
            raise ValueError(f"it tells of {count} entries where at most {most} can be")
        return count

    def _text(self) -> str:
        length = int(self._number("Q"))
        begins = self._at
        self._pass(length)
        return self._view[begins : self._at].decode("utf-8", "replace")

    def _pass_array(self) -> None:
        kind, count = int(self._number("I")), self._count(MOST_ENTRIES)
        if kind != _TEXT:
            self._pass(count * struct.calcsize(f"={_format(kind)}"))
            return
        for _ in range(count):
            length = int(self._number("Q"))
            self._pass(length)

    def _pass(self, length: int) -> None:
        self._at += length
        if self._at > len(self._view):
            raise ValueError("it ends within its header")


def _format(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"it has a setting of type {kind}, which is not known")
    return _NUMBERS[kind]
