"""Reads weights from a model file of CTranslate2. The API of CTranslate2 does not give them out.

The format is private to CTranslate2. The releases 3 and 4 of CTranslate2 write format version 6
(`ctranslate2.specs.ModelSpec`); files of another format version are refused. A later release may
write another one, so voiceloop requires a release below 5. For each variable the file has the name,
shape, type and values. Then come pairs of names: an alias, and the variable that it stands for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

VERSION = 6
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, np.uint16)
"""Types of values; the index of each is its number in the file."""
BFLOAT16 = 5
"""Number of the type bfloat16. numpy does not have it; it is the upper half of a float32."""
SCALE = "_scale"
"""Suffix of the names of scales: the weight NAME has the scale NAME_scale. Integer weights are
stored multiplied by their scale. A scale is one number for all rows, or one number for each row."""

Weights = dict[str, npt.NDArray[np.float32]]


def read_weights(path: Path, prefix: str) -> Weights:
    """Read as float32 the variables whose names begin with `prefix`. The result has their names
    without the prefix.

    Raises ValueError for a file of another format, and OSError for one that cannot be read.
    """
    with _mapped(path) as data:
        found = {name: entry.values(data) for name, entry in _entries(data, prefix)}
    return {
        name: _scaled(values, found.get(name + SCALE))
        for name, values in found.items()
        if not name.endswith(SCALE)
    }


@dataclass(frozen=True, slots=True)
class _Entry:
    """The place, type and shape of a variable in the file."""

    shape: tuple[int, ...]
    kind: int
    begin: int
    size: int
    """Length of the values in bytes."""

    def values(self, data: mmap.mmap) -> npt.NDArray[np.generic]:
        if self.kind >= len(TYPES):
            raise ValueError(f"it has values of an unknown type {self.kind}")
        raw = np.frombuffer(data[self.begin : self.begin + self.size], TYPES[self.kind])
        if self.kind == BFLOAT16:
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.reshape(self.shape)


class _WeightsReader:
    """Reads one value after another. Raises ValueError at the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        """Read a number whose type is `kind`, a format character of the `struct` module."""
        begin = self.skip(struct.calcsize(kind))
        return struct.unpack_from(f"<{kind}", self._data, begin)[0]

    def text(self) -> str:
        length = self.number("H")
        begin = self.skip(length)
        return self._data[begin : begin + length].rstrip(b"\0").decode()

    def skip(self, size: int) -> int:
        """Skip the next `size` bytes, and return the position at which they begin."""
        begin, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise ValueError("it ends too early")
        return begin


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _entries(data: mmap.mmap, prefix: str) -> Iterator[tuple[str, _Entry]]:
    """Yield the variables whose names begin with `prefix`, each with its name without the
    prefix."""
    reader = _WeightsReader(data)
    if (version := reader.number("I")) != VERSION:
        raise ValueError(f"it is of version {version} of CTranslate2's format")
    reader.text()  # the kind of model
    reader.number("I")  # and its revision
    entries: dict[str, _Entry] = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        shape = tuple(reader.number("I") for _ in range(reader.number("B")))
        kind, size = reader.number("B"), reader.number("I")
        entries[name] = _Entry(shape, kind, reader.skip(size), size)
    for _ in range(reader.number("I")):
        alias, name = reader.text(), reader.text()
        if name not in entries:
            raise ValueError(f"it has no {name}")
        entries[alias] = entries[name]
    for name, entry in entries.items():
        if name.startswith(prefix):
            yield name.removeprefix(prefix), entry


def _scaled(
    values: npt.NDArray[np.generic], scale: npt.NDArray[np.generic] | None
) -> npt.NDArray[np.float32]:
    if scale is None:
        return values.astype(np.float32)
    by_row = scale.astype(np.float32).reshape(-1, *[1] * (values.ndim - 1))
    return values.astype(np.float32) / by_row
