"""The page of `bench latency`: one file with tables and pictures, which needs nothing else.

No scripts, fonts or links; it follows the reader's choice of light or dark. Beside it lie the
record, and a trace of every mode for ui.perfetto.dev.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from voiceloop.bench import summary
from voiceloop.bench.pictures import (
    PART_CLASSES,
    POLICY_CLASSES,
    distribution,
    legend,
    stacked_parts,
    trade_off,
    turn_waterfall,
)
from voiceloop.trace import to_perfetto
from voiceloop.types import TurnTrace

Record = Mapping[str, Any]

STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --ink: #1d1d20; --muted: #686870;
  --line: #dcdce2; --p1: #1f5fa8; --p2: #d9822b; --p3: #3b9a6d; --p4: #8a8f9c; --p5: #b8485a;
  --span: #7ba6d6; }
@media (prefers-color-scheme: dark) { :root { --back: #17181b; --ink: #e9e9ec; --muted: #a0a0a8;
  --line: #3a3b41; --p1: #6fa8ea; --p2: #e8a15a; --p3: #62bd90; --p4: #8b90a0; --p5: #e07f8e;
  --span: #47719f; } }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 4rem; background: var(--back);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
p, li { max-width: 46rem; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums;
  margin: .5rem 0; }
caption { text-align: left; color: var(--muted); padding-bottom: .3rem; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr.best td { font-weight: 600; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
text.ink { fill: var(--ink); } text.muted { fill: var(--muted); }
line.grid { stroke: var(--line); } line.mark { stroke: var(--ink); stroke-width: 1.6; }
.p1 { fill: var(--p1); } .p2 { fill: var(--p2); } .p3 { fill: var(--p3); } .p4 { fill: var(--p4); }
.p5 { fill: var(--p5); } .span { fill: var(--span); } .dot { opacity: .65; }
.curve { fill: none; stroke-width: 2; } .dashed { stroke-dasharray: 5 4; stroke-width: 1.4; }
.curve.p1 { stroke: var(--p1); } .curve.p2 { stroke: var(--p2); } .curve.p5 { stroke: var(--p5); }
.ring { fill: var(--back); stroke-dasharray: none; stroke-width: 2; }
.key { margin-right: 1.2rem; white-space: nowrap; } .swatch { width: .8em; height: .8em;
  margin-right: .4em; vertical-align: -.05em; }
"""

NOTES = (
    "Voice to voice runs from the true last audible sample of what was said to the first audible"
    " sample of the reply. The silence that the endpoint waits for is part of it. The delays of a"
    " sound card, of the air and of a microphone are not.",
    "The speculative mode decides where turns end. All others but the policies of endpointing"
    " replay its decisions on the same clip, so none wins by deciding later. A clip is heard in all"
    " modes one directly after the other, each time another one first.",
    "To sound is the time from that decision to the first audible sample: what the software adds."
    " Endpoint is the time from the true end to the decision.",
    "The parts are those of the turn in the middle of each mode, so they sum to its whole. A moment"
    " of the wait belongs to the first part, in their order, that was not done.",
    "Tails lost are words at the end of what was said that are missing, beyond those that the"
    " recogniser misses when it is given the whole recording.",
    "CPU is the processor time of all threads while a clip was heard and answered, the median of"
    " clips. Of replies only the first moments are played, but for the suite of interruptions;"
    " underruns after them are not looked for.",
    "Unless recordings are given, speech is synthetic, and the starter recogniser was trained on"
    " such. It shows what the software does with time, not how well people are understood.",
)
BESIDE = (
    "Beside this page: bench.json, the record, and perfetto-MODE.json, every turn of a mode, which"
    " ui.perfetto.dev opens."
)


def write(folder: Path, record: Record, traces: Mapping[str, Sequence[TurnTrace]]) -> None:
    """Write `latency.html`, `bench.json` and a Perfetto trace of each mode into `folder`."""
    (folder / "latency.html").write_text(html(record), encoding="utf-8")
    (folder / "bench.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for mode, own in traces.items():
        text = json.dumps(to_perfetto(own))
        (folder / f"perfetto-{mode}.json").write_text(text, encoding="utf-8")


def html(record: Record) -> str:
    """The page."""
    modes, *others = summary.tables(record)
    blocks = [
        "<h1>Voice to voice, measured</h1>",
        _paragraphs(summary.subject(record)),
        _table(modes),
        *_pictures(record),
        *(f"<h2>{escape(one.title)}</h2>{_table(one, titled=False)}" for one in others),
        "<h2>How to read this</h2>",
        f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in NOTES)}</ul>",
        "<h2>What these are figures of</h2>",
        _paragraphs([summary.machine(record)]),
        _paragraphs([BESIDE]),
    ]
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>voiceloop: latency</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(blocks)
        + "\n</body>\n</html>\n"
    )


def _pictures(record: Record) -> list[str]:
    marks = "A dot is a turn; the long mark is the median, the short one the 95th percentile."
    found = [
        "<h2>Voice to voice, in milliseconds</h2>",
        _paragraphs([marks]),
        distribution(record),
        "<h2>Where the median turn's time goes</h2>",
        f"<p>{legend(PART_CLASSES)}</p>",
        stacked_parts(record),
    ]
    if endpointing := record.get("endpointing"):
        shown = {policy: POLICY_CLASSES[policy] for policy in endpointing["curves"]}
        found += [
            "<h2>Endpointing: cut-offs against delay</h2>",
            _paragraphs(
                [
                    "As the silence that ends a turn grows, the delay grows and fewer pauses are"
                    " taken for the end. Lines: pauses after incomplete prefixes; dashes: all"
                    " pauses; rings: as configured. Computed from the judgements and the true"
                    " lengths of the pauses."
                ]
            ),
            f"<p>{legend(shown)}</p>",
            trade_off(endpointing),
        ]
    for which, turn in record["turns"].items():
        trace = turn["trace"]
        took = f"{trace['voice_to_voice_ms']:.0f} ms, {turn['clip']}"
        lines = "Upright lines: the true end of speech, the endpoint decision, the first sound."
        found += [
            f"<h2>The {which} turn of the speculative mode: {escape(took)}</h2>",
            _paragraphs([lines]),
            f"<p>{legend({**PART_CLASSES, 'a stage at work': 'span'})}</p>",
            turn_waterfall(trace),
        ]
    return found


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _table(table: summary.Table, *, titled: bool = True) -> str:
    caption = f"<caption>{escape(table.title)}</caption>" if titled else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(
        f"<tr{_best(row)}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in table.rows
    )
    return (
        f"<div class='wide'><table>{caption}<thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _best(row: Sequence[str]) -> str:
    return " class='best'" if row[0] == "speculative" else ""
