"""Calibrations that are kept, and files that are none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.calibration.idle import Calibrations, keep, recall, written
from voiceloop.types import Calibration

pytestmark = pytest.mark.pure

FOUND: Calibrations = {"en": Calibration(0.25, 0.0625, 120, 1.5), "de": None}


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration | None:
    if draw(st.booleans()):
        return None
    low, high = sorted((draw(st.floats(0, 1)), draw(st.floats(0, 1))))
    shift = draw(st.floats(allow_nan=False, allow_infinity=False))
    return Calibration(high, low, draw(st.integers(0, 1200)), shift)


@given(st.dictionaries(st.sampled_from(["en", "de", "es"]), calibrations()), st.text(max_size=30))
def test_what_is_kept_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, found: Calibrations, name: str
) -> None:
    folder = tmp_path_factory.mktemp("kept") / "not there yet"
    keep("abc", name, found, folder)
    assert recall("abc", folder) == found
    assert recall("abd", folder) == {}
    assert [path.name for path in folder.iterdir()] == ["abc.toml"]


DAMAGED = {
    "half a file": lambda text: text[: len(text) // 2],
    "no TOML": lambda text: "\x00" * 40,
    "no method": lambda text: text.replace("method", "way"),
    "endless": lambda text: text.replace("1.5", "inf"),
    "out of range": lambda text: text.replace("0.25", "25.0"),
    "upside down": lambda text: text.replace("0.25", "0.05"),
    "no number": lambda text: text.replace("0.25", "'high'"),
    "not all of it": lambda text: text.replace("complete_ms = 120\n", ""),
}


@pytest.mark.parametrize("damage", sorted(DAMAGED))
def test_a_damaged_file_is_told_of_in_one_line_and_not_used(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "abc.toml").write_text(DAMAGED[damage](written(FOUND, "a model")))
    with caplog.at_level(logging.WARNING):
        assert recall("abc", tmp_path) == {}
    (record,) = caplog.records
    assert "abc.toml is not a calibration" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_what_another_method_found_is_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "abc.toml").write_text(written(FOUND, "a model").replace("method = ", "method = 9"))
    assert recall("abc", tmp_path) == {}
    assert not caplog.records


def test_a_folder_that_cannot_be_written_to_costs_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with caplog.at_level(logging.WARNING):
        keep("abc", "a model", FOUND, in_the_way)
    (record,) = caplog.records
    assert "the calibration of 'a model' is not kept" in record.getMessage()
