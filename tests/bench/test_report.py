"""Tables, pages and pictures of a record: complete, well-formed, and true to it."""

from __future__ import annotations

import copy
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from voiceloop.bench.charts import acceptance_chart
from voiceloop.bench.progress import Progress
from voiceloop.bench.report import CHARTS, LABELS, markdown, open_folder, table, write
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.models

SVG = "{http://www.w3.org/2000/svg}"


def test_a_report_is_a_page_its_pictures_and_the_record(
    record: dict[str, Any], tmp_path: Path
) -> None:
    folder = open_folder(tmp_path / "a" / "report")
    write(folder, record)
    assert {file.name for file in folder.iterdir()} == {*CHARTS, "bench.json", "report.md"}
    assert json.loads((folder / "bench.json").read_text()) == record
    tokens = MarkdownIt("commonmark").enable("table").parse((folder / "report.md").read_text())
    inside = [child for token in tokens for child in token.children or []]
    linked = {str(child.attrs["src"]) for child in inside if child.type == "image"}
    linked |= {str(child.attrs["href"]) for child in inside if child.type == "link_open"}
    assert linked == {*CHARTS, "bench.json"}
    assert [token.type for token in tokens].count("table_open") == 2


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_is_well_formed_and_needs_nothing_else(name: str, record: dict[str, Any]) -> None:
    labels = {mode: f"<{label}> & co" for mode, label in LABELS.items()}
    text = CHARTS[name][1](record, labels)
    root = ElementTree.fromstring(text)
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    for box in root.iter(f"{SVG}rect"):
        if "x" in box.attrib:
            x, y, wide, tall = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
            assert wide >= 0 and tall >= 0
            assert 0 <= x and x + wide <= width and 0 <= y and y + tall <= height
    assert len(list(root.iter(f"{SVG}text"))) > 3
    assert "href" not in text and "<script" not in text


def test_bars_are_as_long_as_the_figures_are_large(record: dict[str, Any]) -> None:
    root = ElementTree.fromstring(CHARTS["tokens_per_s.svg"][1](record, LABELS))
    bars = [float(box.attrib["width"]) for box in root.iter(f"{SVG}rect") if "x" in box.attrib]
    rates = [mode["tokens_per_s"] for mode in record["modes"].values()]
    assert len(bars) == len(rates)
    for bar, rate in zip(bars, rates, strict=True):
        assert bar / bars[0] == pytest.approx(rate / rates[0], abs=0.02)


def test_a_pair_without_guesses_is_drawn_too(record: dict[str, Any]) -> None:
    silent = copy.deepcopy(record)
    for mode in silent["modes"].values():
        mode |= {"acceptance": None, "acceptance_by_position": [], "tested_by_position": []}
    silent["ratios"]["measured_over_predicted"] = None
    silent["speedup_after_first_token"]["predicted"] = None
    ElementTree.fromstring(acceptance_chart(silent, LABELS))
    assert "predict" not in table(silent)


def test_the_table_names_every_mode_with_its_figures(record: dict[str, Any]) -> None:
    text = table(record)
    for name, mode in record["modes"].items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"{LABELS[name]}  ")]
        assert f"{mode['tokens_per_s']:.1f}" in line.split()
        assert f"{mode['cost_per_1000_tokens']:.3g}" in line.split()
    assert "All modes gave the same text." in text
    assert record["machine"]["torch"] in text
    assert not re.search(r"nan|None", text)


def test_what_is_not_as_it_should_be_is_said(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["greedy_equal"] = False
    other["settings"] |= {"replies": 1, "price_per_hour": None}
    for mode in other["modes"].values():
        mode["cost_per_1000_tokens"] = None
    text = table(other)
    assert "differ" in text
    assert "Time was up after 1 of 4" in text
    assert "cost of" not in text
    assert "cost of" in markdown(record)


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
