"""The requests that models are calibrated on: what people say, and where they may pause in it.

They are bundled as text files, one for each language, whose notation en.txt explains. This module
reads them and tells the kinds of pauses apart; it knows no models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from voiceloop.calibration.probability import bare
from voiceloop.languages import Language, language

Kind = Literal["end", "whole", "function word", "content word"]
"""How the words before a silence stand: as all that is said; as a request that goes on all the
same; and as an incomplete one, which ends in a word after which hardly anybody ends, or in another.
"""

_CUT = re.compile(r"\s*([/|])\s*")


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a user may be silent."""

    words: str
    """What was said before it, without punctuation at its end."""
    kind: Kind
    unfinished: bool
    """The last word asks for another."""


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """One request and the silences in it."""

    text: str
    style: str
    cuts: tuple[Cut, ...]
    """In order; the last is the end."""


def request(marked: str, spoken_in: Language, style: str = "") -> CalibrationRequest:
    """A request in the notation of en.txt."""
    *parts, last = _CUT.split(marked.strip())

    def cut(said: str, kind: Kind) -> Cut:
        asks = spoken_in.asks_for_more(said)
        if kind == "content word" and asks:
            kind = "function word"
        return Cut(bare(said), kind, asks)

    said, cuts = "", list[Cut]()
    for piece, mark in zip(parts[::2], parts[1::2], strict=True):
        said = f"{said} {piece}".strip()
        cuts.append(cut(said, "whole" if mark == "|" else "content word"))
    text = f"{said} {last}".strip()
    return CalibrationRequest(text, style, (*cuts, cut(text, "end")))


@dataclass(frozen=True, slots=True)
class Requests:
    """What people ask for in one language."""

    asked: tuple[CalibrationRequest, ...]
    history: tuple[tuple[str, str], ...]
    """Questions and answers that may stand before any of them."""


def requests(text: str, spoken_in: Language) -> Requests:
    """The requests of a whole file; a comment above some is the name of their style."""
    style, asked, said = "", list[CalibrationRequest](), list[str]()
    for line in filter(None, map(str.strip, text.splitlines())):
        match line[0]:
            case "#":
                style = line.removeprefix("#").strip()
            case ">":
                said.append(line.removeprefix(">").strip())
            case _:
                asked.append(request(line, spoken_in, style))
    return Requests(tuple(asked), tuple(zip(said[::2], said[1::2], strict=True)))


def bundled_requests() -> dict[str, Requests]:
    """All that are bundled, by the language's code."""
    return {
        file.stem: requests(file.read_text(encoding="utf-8"), language(file.stem))
        for file in sorted(Path(__file__).parent.glob("??.txt"))
    }
