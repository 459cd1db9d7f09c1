"""Clips, takes and records of which everything is known, and what pages are read with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np

from voiceloop.asr.turns import TurnEnded
from voiceloop.bench.clips import Clip, Interruption, InterruptionKind, Pause, Said
from voiceloop.bench.record import Record
from voiceloop.bench.sentences import Standing
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.types import Transcript, TurnTrace, Word

RATE = 16_000
SVG = "{http://www.w3.org/2000/svg}"
EMPTY = {"br", "meta", "link", "hr", "img"}
MACHINE = {
    **{"processor": "A & B", "cores": 2, "threads": 1, "load": 0.5, "system": "Linux x86_64"},
    **{"python": "3.11.7", "torch": "2.13", "voiceloop": "0.1.0"},
}
BEGAN = 100.0
"""When sample 0 of every take was recorded."""
END = 2.0
"""When speech ends, in seconds of the clip."""


def at(seconds: float) -> int:
    """The sample at `seconds` of the clip."""
    return round(seconds * RATE)


def clip(
    name: str = "a-000",
    pauses: Sequence[tuple[Standing, float, float]] = (),
    *,
    text: str = "what is the time",
    interruption: tuple[InterruptionKind, str] | None = None,
) -> Clip:
    """Something said from 0.5 to `END` seconds, with pauses (standing, start, end)."""
    silence = np.zeros(at(0.1), np.float32)
    made = tuple(Pause(2, "what is", how, at(start), at(end)) for how, start, end in pauses)
    sound = None
    if interruption is not None:
        kind, words = interruption
        sound = Interruption(kind, words, np.ones(at(0.3), np.float32), at(0.01), at(0.29), 500.0)
    said = Said(text, None, at(0.5), at(END), made)
    return Clip(name, silence, silence, said, interruption=sound)


def answered(
    turn: int = 1, *, end: float = END, endpoint: float = 0.2, sound: float = 0.3
) -> Recorder:
    """A turn that ended at `end`, with its endpoint and first sound so many seconds later."""
    recorder = Recorder(turn)
    for mark, after in (
        (Mark.SPEECH_START, -1.5),
        (Mark.SPEECH_END, 0.01),
        (Mark.ENDPOINT, endpoint),
        (Mark.TRANSCRIPT_FINAL, endpoint),
        (Mark.FIRST_CLAUSE, endpoint + (sound - endpoint) / 2),
        (Mark.FIRST_SYNTHESIS, sound),
        (Mark.FIRST_SOUND, sound),
    ):
        recorder.mark(mark, BEGAN + end + after)
    return recorder


def judge(
    recorder: Recorder, begun: float, known: float, text: str, probability: float
) -> Recorder:
    """Add a judgement of whether the turn ends after `text`."""
    recorder.span(Lane.PREFILL, "prefill", BEGAN + begun, BEGAN + known, text=text)
    recorder.span(
        Lane.VAD, "end of turn?", BEGAN + begun, BEGAN + known, probability=probability, text=text
    )
    return recorder


def take(
    *traces: TurnTrace,
    ends: Sequence[float] = (),
    heard: Sequence[str] = (),
    interrupted: float | None = None,
    mode: str = "speculative",
    cpu_s: float = 1.0,
) -> Take:
    """A take with endpoints at `ends` seconds, in which a turn for each of `heard` was heard."""
    return Take(
        mode,
        tuple(TurnEnded(at(end), at(end - 0.2)) for end in ends),
        traces,
        tuple(
            Transcript(turn, 1, tuple(Word(word, 0, 0) for word in text.split()), final=True)
            for turn, text in enumerate(heard, 1)
        ),
        None if interrupted is None else at(interrupted),
        BEGAN,
        cpu_s,
    )


def clip_record(name: str, **takes: dict[str, Any]) -> dict[str, Any]:
    """A clip's part of a record."""
    return {"name": name, "text": "what is the time", "takes": takes}


def take_record(voice_to_voice_ms: float | None, **others: Any) -> dict[str, Any]:
    """What a record says of a take; an endpoint after half of the time unless told otherwise."""
    whole = voice_to_voice_ms
    return {
        "heard_as": "what is the time",
        "voice_to_voice_ms": whole,
        "endpoint_to_sound_ms": None if whole is None else whole / 2,
        "endpoint_delay_ms": None if whole is None else whole / 2,
        "parts_ms": {} if whole is None else {"endpoint wait": whole / 2, "llm": whole / 2},
        "cut_offs": 0,
        "words": 4,
        "word_errors": 0,
        "wasted_tokens": 0,
        "replies_dropped": 0,
        "cpu_s": 1.0,
        **others,
    }


def of_json(plain: Mapping[str, Any]) -> Record:
    """The record that was printed so."""
    figures = {**plain}
    about = {name: figures.pop(name) for name in ("bench", "machine", "settings")}
    return Record(**about, figures=figures)


def drawing(svg: str) -> ElementTree.Element:
    """A picture, read; it stays within its frame and needs nothing else."""
    assert "href" not in svg and "<script" not in svg
    root = ElementTree.fromstring(svg)
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    for element in root.iter():
        for xs, ys in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if xs in element.attrib:
                assert 0 <= float(element.attrib[xs]) <= width
                assert 0 <= float(element.attrib[ys]) <= height
        if element.tag == f"{SVG}rect":
            x, y, wide, tall = (float(element.attrib[key]) for key in ("x", "y", "width", "height"))
            assert wide >= 0 and tall >= 0
            assert x + wide <= width and y + tall <= height
        for point in element.attrib.get("points", "").split():
            x, y = point.split(",")
            assert 0 <= float(x) <= width and 0 <= float(y) <= height
    return root


class Tags(HTMLParser):
    """Checks that what is opened is closed, and collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert not tags.open
    return tags
