"""What a reader sees of a record: a table on the terminal, and a page with pictures.

Everything is read from the record of `voiceloop.bench.record`; nothing is computed anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voiceloop.bench.charts import acceptance_chart, rate_chart, step_chart
from voiceloop.errors import VoiceloopError

Record = Mapping[str, Any]

LABELS = {
    "plain": "voiceloop, plain",
    "speculative": "voiceloop, speculative",
    "hf_plain": "transformers, plain",
    "hf_assisted": "transformers, best length",
    "hf_assisted_default": "transformers, by default",
}
COLUMNS = ("tokens/s", "first token", "per round", "acceptance", "same text")
RATIOS = {
    "speculative_over_plain": "speculative over plain",
    "speculative_over_hf_plain": "speculative over transformers plain",
    "speculative_over_hf_assisted": "speculative over transformers, best length",
    "plain_over_hf_plain": "plain over transformers plain",
    "measured_over_predicted": "speed-up after the first token, measured over predicted",
}
CHARTS: dict[str, tuple[str, Callable[[Record, Mapping[str, str]], str]]] = {
    "tokens_per_s.svg": ("Tokens per second in each mode", rate_chart),
    "acceptance.svg": ("Acceptance by position in the round", acceptance_chart),
    "step_time.svg": ("Where the time of a token goes", step_chart),
}


def table(record: Record) -> str:
    """The record as lines for a terminal."""
    rows = _rows(record)
    header = ("mode", *COLUMNS, *(["cost of 1,000"] if _priced(record) else []))
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (header, *rows)
    ]
    ratios = [f"{label:<57} {figures}" for label, figures in _ratios(record)]
    return "\n".join(
        [*_subject(record), "", *lines, "", *ratios, "", *_verdicts(record), "", _machine(record)]
    )


def markdown(record: Record) -> str:
    """The record as a page that shows the pictures of `CHARTS` beside it."""
    header = ("mode", *COLUMNS, *(["cost of 1,000"] if _priced(record) else []))
    ratios = [(label, figures) for label, figures in _ratios(record)]
    pictures = [f"![{title}]({name})" for name, (title, _) in CHARTS.items()]
    first, *others = pictures
    blocks = [
        "# Speculative decoding, measured",
        " ".join(_subject(record)),
        first,
        grid(header, _rows(record)),
        grid(("ratio of tokens per second", "median and quartiles of paired runs"), ratios),
        "\n".join(f"- {line}" for line in _verdicts(record)),
        *others,
        "## What these are figures of",
        _machine(record),
        "All figures, unrounded by layout: [bench.json](bench.json).",
    ]
    return "\n\n".join(blocks) + "\n"


def open_folder(path: Path) -> Path:
    """Make the folder of a report, before hours of work are lost for want of it.

    Raises VoiceloopError where it cannot be made or written to.
    """
    probe = path / ".voiceloop"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise VoiceloopError(
            f"no report can be written to {path}: {error.strerror}",
            "give --report a folder that you may write to",
        ) from error
    return path


def write(folder: Path, record: Record) -> None:
    """Write `report.md`, its pictures and `bench.json` into `folder`."""
    for name, (_, draw) in CHARTS.items():
        (folder / name).write_text(draw(record, LABELS), encoding="utf-8")
    (folder / "bench.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (folder / "report.md").write_text(markdown(record), encoding="utf-8")


def _rows(record: Record) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, mode in record["modes"].items():
        row = (
            LABELS[name],
            f"{mode['tokens_per_s']:.1f}",
            f"{mode['ttft_ms']:.1f} ms",
            f"{mode['tokens_per_round']:.2f}",
            "-" if mode["acceptance"] is None else f"{mode['acceptance']:.1%}",
            f"{mode['equal_to_plain']:.0%}",
        )
        cost = mode["cost_per_1000_tokens"]
        rows.append(row if cost is None else (*row, f"{cost:.3g}"))
    return rows


def _ratios(record: Record) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, label in RATIOS.items():
        value = record["ratios"][name]
        if value is not None:
            low, high = record["spreads"][name]
            found.append((label, f"{value:.2f} ({low:.2f}-{high:.2f})"))
    return found


def _subject(record: Record) -> list[str]:
    settings, machine = record["settings"], record["machine"]
    target, draft = (
        f"{settings[name]} ({_size(settings[f'{name}_parameters'])})"
        for name in ("target", "draft")
    )
    asked = settings["synthetic_acceptance"]
    oracle = "" if asked is None else f" that is right with probability {asked:g}"
    law = f"temperature {settings['temperature']:g}" if settings["temperature"] else "greedy"
    place = machine["gpu"] or f"{machine['processor']}, {_count(machine['threads'], 'thread')}"
    return [
        f"{target} with the draft {draft}{oracle}, {machine['dtype']}, on {place}.",
        f"{_count(settings['replies'], 'reply', 'replies')} to {settings['prompts']} prompts in"
        f" each mode, {law}, at most {settings['max_new_tokens']} tokens;"
        " medians and quartiles, modes in turn.",
    ]


def _verdicts(record: Record) -> list[str]:
    settings, steps, bandwidth = record["settings"], record["steps"], record["bandwidth"]
    lines: list[str] = []
    if settings["replies"] < settings["replies_planned"]:
        lines.append(
            f"Time was up after {settings['replies']} of {settings['replies_planned']} replies."
        )
    match record["greedy_equal"]:
        case True:
            lines.append("All modes gave the same text.")
        case False:
            lines.append("The modes differ in their text: see 'same text'.")
        case _:
            same = record["modes"]["speculative"]["equal_to_plain"]
            lines.append(f"Drawn replies: speculative gave the same as plain in {same:.0%}.")
    speedup = record["speedup_after_first_token"]
    if speedup["predicted"] is not None:
        lines.append(
            f"After the first token speculation is {speedup['measured']:.2f} times as fast;"
            f" the measured step times and acceptance predict {speedup['predicted']:.2f}."
        )
    one = steps["target_pass_ms"]["1"]
    best = _count(settings["hf_draft_length"], "guess", "guesses")
    lines += [
        f"One pass of the target takes {one:.2f} ms, one guess {steps['draft_step_ms']:.2f} ms"
        f" (c = {steps['draft_step_ms'] / one:.2f}), the rest of a round {steps['rest_ms']:.2f} ms"
        f" (o = {steps['rest_ms'] / one:.2f}).",
        f"Reading the {bandwidth['mb_per_pass']:.3g} MB of weights at {bandwidth['gb_per_s']:.1f}"
        f" GB/s takes {bandwidth['floor_ms']:.2f} ms a token; plain decoding reaches"
        f" {bandwidth['share_reached']:.0%} of that speed"
        + (", so the weights stay in a cache." if bandwidth["share_reached"] > 1 else "."),
        f"The best constant length of transformers' drafts is {best} a round; by default it drafts"
        " 20, fewer where the draft is unsure.",
    ]
    return lines


def _machine(record: Record) -> str:
    machine = record["machine"]
    gpu = f"{machine['gpu']}, " if machine["gpu"] else ""
    load = "" if machine["load"] is None else f", load {machine['load']:g} at the start"
    return (
        f"{gpu}{machine['processor']}, {_count(machine['cores'], 'core')}, torch on"
        f" {_count(machine['threads'], 'thread')}{load}, {machine['system']},"
        f" Python {machine['python']}, torch {machine['torch']},"
        f" transformers {machine['transformers']}, voiceloop {machine['voiceloop']}."
    )


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def _priced(record: Record) -> bool:
    return record["settings"]["price_per_hour"] is not None


def _size(parameters: int) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if parameters >= size:
            return f"{parameters / size:.3g} {letter}"
    return f"{parameters / 1e3:.0f} k"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
