"""The store of models: where models are on the disk, and which of their files are complete.

A model is a folder of the store, with its files and a record of them. The folder gets its final
name by one rename, when everything is there and on the disk. So a folder with a final name is
complete. Unfinished models are under `.partial`. This module does not know where files come from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from voiceloop.catalog.cards import Card, parse
from voiceloop.errors import VoiceloopError
from voiceloop.terminal import size

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

RECORD = "voiceloop.json"
BLOCK = 1 << 20


@cache
def cards() -> tuple[Card, ...]:
    """Return the cards that ship with voiceloop."""
    return parse((files("voiceloop.catalog") / "cards.toml").read_text(encoding="utf-8"))


def sha256(path: Path, tick: Callable[[int], object] = lambda count: None) -> str:
    """Return the SHA-256 of a file in hexadecimal digits. `tick` is called with the number of bytes
    of each block that is read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            tick(len(block))
    return digest.hexdigest()


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files in a folder and its subfolders, by relative path, sorted."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}


class Stored(Struct, frozen=True):
    """A file as it was when its model was put into the store."""

    bytes: int
    sha256: str


class ModelRecord(Struct, frozen=True):
    """What the store records of a model."""

    name: str
    origin: str
    """`hub`, `packages`, or `file` for a model that was converted from a file of the user's."""
    source: Mapping[str, Any]
    """Where the model came from: repository and commit, packages, or a file's path, size and
    time."""
    files: Mapping[str, Stored]


class Model(ModelRecord, frozen=True):
    """A model in the store."""

    folder: Path

    @property
    def bytes(self) -> int:
        """Bytes that the model takes on the disk."""
        return sum(file.bytes for file in self.files.values())

    @property
    def whole(self) -> bool:
        """Whether all files are there and have the right sizes."""
        return all(self._has_size(name) for name in self.files)

    def damaged(self, tick: Callable[[int], object] = lambda count: None) -> list[str]:
        """Return the names of files that are missing or changed. `tick` is called with the number
        of bytes of each block that is read."""
        return [
            name
            for name, stored in self.files.items()
            if not self._has_size(name) or sha256(self.folder / name, tick) != stored.sha256
        ]

    def _has_size(self, name: str) -> bool:
        path = self.folder / name
        return path.is_file() and path.stat().st_size == self.files[name].bytes


class ModelStore:
    """The folder in which models lie."""

    def __init__(self, root: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        """Use `root`, or $VOICELOOP_MODELS, or `voiceloop/models` in the user's cache folder."""
        if root is None:
            base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            named = environ.get("VOICELOOP_MODELS")
            root = Path(named).expanduser() if named else Path(base) / "voiceloop" / "models"
        self.root = root

    def models(self) -> list[Model]:
        """Return all models whose records can be read, sorted by name. Their files are not
        checked."""
        if not self.root.is_dir():
            return []
        found = (self._read(path) for path in sorted(self.root.iterdir()) if path.name[0] != ".")
        return [model for model in found if model is not None]

    def unreadable(self) -> list[str]:
        """Return the names of the folders that look like models (`name@origin`) but have no
        readable record."""
        called = [path for path in sorted(self.root.glob("[!.]*@*")) if path.is_dir()]
        return [path.name for path in called if self._read(path) is None]

    def find(self, name: str, origin: str | None = None) -> Model | None:
        """Return the model called `name` from `origin`. Without `origin`, look for the hub's model,
        then for that of packages. None if no model is found whose files all have the right
        sizes."""
        found = (self.known(name, each) for each in ([origin] if origin else ["hub", "packages"]))
        return next((model for model in found if model and model.whole), None)

    def known(self, name: str, origin: str) -> Model | None:
        """Return the store's record of a model, even if files are missing or damaged."""
        return self._read(self._folder(name, origin))

    def remove(self, model: Model) -> None:
        """Delete a model. Its folder is renamed first, so that `find` never meets half a model."""
        removed = self.root / ".partial" / f"{model.folder.name}.removed"
        with explained(self.root):
            removed.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(removed, ignore_errors=True)
            model.folder.rename(removed)
            shutil.rmtree(removed)

    @contextmanager
    def workshop(self, name: str, origin: str) -> Iterator[Path]:
        """Yield a folder in which a model is put together. After success the folder is deleted.
        After a failure it stays for the next try.

        Raises VoiceloopError if another process works in it; on Windows this is not noticed.
        """
        folder = self._workshop(name, origin)
        with explained(self.root):
            folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, name):
            yield folder
            shutil.rmtree(folder)

    def fetched(self, name: str, origin: str) -> int:
        """Return the number of bytes that have arrived of a model whose download broke off; 0 for
        any other model."""
        with explained(self.root):
            fetched = files_in(self._workshop(name, origin) / "fetched")
            return sum(path.stat().st_size for path in fetched.values())

    def _workshop(self, name: str, origin: str) -> Path:
        return self.root / ".partial" / self._folder(name, origin).name

    def put(self, made: Path, name: str, origin: str, source: Mapping[str, Any]) -> Model:
        """Move the finished folder `made` to its final name, in place of an older model.

        Files and record are on the disk before the folder has its name.
        """
        stored = {
            file: Stored(path.stat().st_size, sha256(path))
            for file, path in files_in(made).items()
            if file != RECORD
        }
        record = ModelRecord(name, origin, source, stored)
        (made / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
        for path in files_in(made).values():
            if not path.is_symlink():  # a link leads to one of the user's own files
                path.chmod(made.stat().st_mode & 0o666)  # some writers exclude other users
            _sync(path)
        for inner in (path for path in made.rglob("*") if path.is_dir()):
            _sync(inner)
        _sync(made)
        folder = self._folder(name, origin)
        old = made.with_name("old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
        _sync(self.root)
        return Model(name, origin, source, stored, folder)

    def _folder(self, name: str, origin: str) -> Path:
        return self.root / f"{name.replace('/', '--')}@{origin}"

    @staticmethod
    def _read(folder: Path) -> Model | None:
        try:
            record = msgspec.json.decode((folder / RECORD).read_bytes(), type=ModelRecord)
        except (OSError, msgspec.DecodeError):
            return None  # no model, or an unfinished one
        return Model(record.name, record.origin, record.source, record.files, folder)


def make_room(folder: Path, needed: int) -> None:
    """Raise VoiceloopError unless the disk of `folder` has room for `needed` bytes."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise VoiceloopError(
            f"the disk of {folder} has {size(free)} free, and {size(needed)} are needed",
            "make room, or name another folder in VOICELOOP_MODELS",
        )


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Explain in one line why files cannot be written: turn OSError into VoiceloopError."""
    try:
        yield
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise VoiceloopError(
                f"the disk of {folder} is full", "make room and pull again: what has come is kept"
            ) from error
        raise VoiceloopError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}",
            "check its permissions, or name another folder in VOICELOOP_MODELS",
        ) from error


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Keep other processes out of the model's workshop while the context lasts."""
    if fcntl is None:
        yield
        return
    with explained(folder):
        lock = (folder / "lock").open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise VoiceloopError(
                f"another process is fetching {name}", "wait until it has finished"
            ) from None
        yield


def _sync(path: Path) -> None:
    """Make sure that a file, or a folder's list of names, is on the disk."""
    if os.name == "nt":  # Windows cannot sync folders, nor files that are opened to read
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
