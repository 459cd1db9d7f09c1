"""The settings at the beginning of a GGUF file, whatever the file says of itself."""

from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import lacking
from voiceloop.catalog.convert import convert
from voiceloop.catalog.ggufheader import read_settings
from voiceloop.errors import ModelCorrupt

pytestmark = pytest.mark.models

quick = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12)
VALUES = st.one_of(
    st.text(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32, allow_nan=False),
    st.lists(st.integers(0, 2**16), min_size=1, max_size=5),
    st.lists(st.text(), min_size=1, max_size=5),
)


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    if find_spec("gguf") is None:
        lacking("gguf is not installed: pip install 'voiceloop[convert]'")


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def header(*settings: bytes, tensors: int = 0, count: int | None = None) -> bytes:
    told = struct.pack("<IQQ", 3, tensors, len(settings) if count is None else count)
    return b"GGUF" + told + b"".join(settings)


def array(name: str, kind: int, count: int, body: bytes = b"") -> bytes:
    return text(name) + struct.pack("<IIQ", 9, kind, count) + body


@quick
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_settings_are_those_that_were_written(tmp_path: Path, told: dict[str, Any]) -> None:
    import gguf

    out = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    for name, value in told.items():
        match value:
            case bool():
                out.add_bool(name, value)
            case int():
                out.add_int32(name, value)
            case float():
                out.add_float32(name, value)
            case str():
                out.add_string(name, value)
            case _:
                out.add_array(name, value)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.close()
    found = read_settings(tmp_path / "x.gguf")
    plain = {name: value for name, value in told.items() if not isinstance(value, list)}
    plain = {name: value for name, value in plain.items() if value != ""}  # it writes none
    del found["general.architecture"]
    assert {name: value for name, value in found.items() if value != ""} == plain


ENORMOUS = {
    **{f"an array of type {kind}": header(array("a", kind, 2**60)) for kind in range(13)},
    "an array of 2**64 - 1": header(array("a", 0, 2**64 - 1)),
    "an array that the file is too short for": header(array("a", 0, 1000, bytes(999))),
    "texts that the file is too short for": header(array("a", 8, 3, text("a") + text("b"))),
    "a long text in an array": header(array("a", 8, 1, struct.pack("<Q", 2**63))),
    "a long text": header(text("a") + struct.pack("<IQ", 8, 2**60)),
    "a long name": header(struct.pack("<Q", 2**60)),
    "settings": header(count=2**60),
    "tensors": header(tensors=2**60),
    "an unknown type": header(text("a") + struct.pack("<I", 99)),
    "nothing": b"GGUF",
    "half a count": b"GGUF" + bytes(9),
}


@pytest.mark.parametrize("name", ENORMOUS)
def test_what_a_file_is_too_short_for_is_one_line_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "small.gguf").write_bytes(ENORMOUS[name])
    with pytest.raises(ModelCorrupt, match=r"small\.gguf is damaged") as caught:
        convert("gguf", tmp_path, tmp_path / "to")
    assert "\n" not in caught.value.message


def test_a_large_file_of_nothing_is_not_gone_through(tmp_path: Path) -> None:
    path = tmp_path / "small.gguf"
    path.write_bytes(header(array("a", 8, 2**31)))
    with path.open("r+b") as file:
        file.truncate(2**33)
    with pytest.raises(ValueError, match="at most"):
        read_settings(path)


@quick
@given(st.data())
def test_damaged_headers_are_values_or_no_settings(tmp_path: Path, data: st.DataObject) -> None:
    whole = header(
        text("a") + struct.pack("<I", 8) + text("x"),
        array("b", 8, 2, text("x") + text("y")),
        array("c", 4, 2, bytes(8)),
        text("d") + struct.pack("<IQ", 10, 7),
    )
    body = bytearray(whole[: data.draw(st.integers(5, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "small.gguf"
    path.write_bytes(body)
    try:
        read_settings(path)
    except ValueError as error:
        assert str(error)
