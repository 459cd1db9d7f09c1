"""The report of `bench llm`, and what all reports share: complete, well-formed, true to it."""

from __future__ import annotations

import copy
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bench.made import SVG, drawing, of_json, read
from voiceloop.bench.progress import Progress
from voiceloop.bench.record import Record
from voiceloop.bench.report import llm
from voiceloop.bench.report.draw import html, open_folder, text, write
from voiceloop.bench.report.llm import LABELS, acceptance_chart, rate_chart, report
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.models


def table(record: dict[str, Any]) -> str:
    return text(report(of_json(record)))


def test_a_report_is_a_page_with_pictures_and_the_record(measured: Record, tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "a" / "report")
    write(folder, measured, report(measured), {})
    assert {file.name for file in folder.iterdir()} == {"bench.json", "report.html"}
    assert json.loads((folder / "bench.json").read_text()) == measured.to_json()
    tags = read((folder / "report.html").read_text(encoding="utf-8"))
    assert tags.tags.count("table") == 2
    assert tags.attributes["role"].count("img") == len(report(measured).pictures) == 3


def test_every_picture_is_well_formed_and_needs_nothing_else(
    measured: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {mode: f"<{label}> & co" for mode, label in LABELS.items()}
    monkeypatch.setattr(llm, "LABELS", labels)
    for picture in report(measured).pictures:
        assert len(list(drawing(picture.svg).iter(f"{SVG}text"))) > 3
    assert "<voiceloop, plain> & co" in read(html(report(measured))).text


def test_bars_are_as_long_as_the_figures_are_large(record: dict[str, Any]) -> None:
    root = drawing(rate_chart(record))
    bars = [float(box.attrib["width"]) for box in root.iter(f"{SVG}rect")]
    rates = [mode["tokens_per_s"] for mode in record["modes"].values()]
    assert len(bars) == len(rates)
    for bar, rate in zip(bars, rates, strict=True):
        assert bar / bars[0] == pytest.approx(rate / rates[0], abs=0.02)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_limit_is_drawn_where_it_leaves_the_bars_their_room(
    record: dict[str, Any], share: float
) -> None:
    highest = max(mode["tokens_per_s_quartiles"][1] for mode in record["modes"].values())
    floor = {**record["bandwidth"], "floor_tokens_per_s": share * highest}
    picture = rate_chart({**record, "bandwidth": floor})
    assert ("class='limit'" in picture) == (share < 1.6)


def test_a_pair_without_guesses_is_drawn_too(record: dict[str, Any]) -> None:
    silent = copy.deepcopy(record)
    for mode in silent["modes"].values():
        mode |= {"acceptance": None, "acceptance_by_position": [], "tested_by_position": []}
    silent["ratios"]["measured_over_predicted"] = None
    silent["speedup_after_first_token"]["predicted"] = None
    drawing(acceptance_chart(silent))
    assert "predict" not in table(silent)


def test_the_table_names_every_mode_with_its_figures(record: dict[str, Any]) -> None:
    told = table(record)
    for name, mode in record["modes"].items():
        (line,) = [line for line in told.splitlines() if line.startswith(f"{LABELS[name]}  ")]
        assert f"{mode['tokens_per_s']:.1f}" in line.split()
        assert f"{mode['cost_per_1000_tokens']:.3g}" in line.split()
    assert "All modes gave the same text." in told
    assert record["machine"]["torch"] in told
    assert not re.search(r"nan|None", told)


def test_what_is_not_as_it_should_be_is_said(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["greedy_equal"] = False
    other["settings"] |= {"replies": 1, "price_per_hour": None}
    for mode in other["modes"].values():
        mode["cost_per_1000_tokens"] = None
    told = table(other)
    assert "differ" in told
    assert "Time was up after 1 of 4" in told
    assert "cost of" not in told
    assert "cost of" in table(record)


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(VoiceloopError) as refused:
            open_folder(path)
        assert "--report" in refused.value.hint
    assert not list(tmp_path.glob("*/*"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_leaves_a_terminal_clean() -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress("loading")
        progress("answering")
    written = terminal.getvalue()
    assert "\n" not in written
    assert written.endswith("\r\x1b[K")


def test_progress_is_brief_in_a_log() -> None:
    log = io.StringIO()
    with Progress(log) as progress:
        for step in range(100):
            progress(f"step {step}")
    assert log.getvalue() == "step 0\n"
