"""The requests that models are calibrated on, and the places where the user may pause in them.

They are the file `calibration.txt` of each language's pack, in a notation that the English one
explains. This module parses them and classifies the pauses. It knows no models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from voiceloop.languages import Language, bare, installed, language
from voiceloop.languages.language import text

Kind = Literal["end", "whole", "function word", "content word"]
"""Kind of the words before a silence. `end`: the words are all that is said. `whole`: they are a
complete request, but more follows. `function word`: they are incomplete, and hardly any turn ends
with their last word, such as "to". `content word`: they are incomplete and end with another
word."""

_CUT = re.compile(r"\s*([/|])\s*")


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in a request where the user may be silent."""

    words: str
    """Words of the request before this place, without punctuation at their end."""
    kind: Kind
    unfinished: bool
    """Whether the last word needs another one after it, like `to`."""


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """One request and the silences in it."""

    text: str
    style: str
    cuts: tuple[Cut, ...]
    """Silences in order. The last is the end of the request."""


def request(marked: str, spoken_in: Language, style: str = "") -> CalibrationRequest:
    """Parse `marked`, a request in the notation of the English file."""
    *parts, last = _CUT.split(marked.strip())

    def cut(said: str, kind: Kind) -> Cut:
        unfinished = spoken_in.asks_for_more(said)
        if kind == "content word" and unfinished:
            kind = "function word"
        return Cut(bare(said), kind, unfinished)

    said, cuts = "", list[Cut]()
    for piece, mark in zip(parts[::2], parts[1::2], strict=True):
        said = f"{said} {piece}".strip()
        cuts.append(cut(said, "whole" if mark == "|" else "content word"))
    text = f"{said} {last}".strip()
    return CalibrationRequest(text, style, (*cuts, cut(text, "end")))


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in one language."""

    asked: tuple[CalibrationRequest, ...]
    history: tuple[tuple[str, str], ...]
    """Questions with their answers, which can be the dialogue before any of the requests."""


def requests(given: str, spoken_in: Language) -> Requests:
    """Parse a whole file of requests. A comment names the style of the requests after it."""
    style, found, said = "", list[CalibrationRequest](), list[str]()
    for line in filter(None, map(str.strip, given.splitlines())):
        match line[0]:
            case "#":
                style = line.removeprefix("#").strip()
            case ">":
                said.append(line.removeprefix(">").strip())
            case _:
                found.append(request(line, spoken_in, style))
    return Requests(tuple(found), tuple(zip(said[::2], said[1::2], strict=True)))


def bundled_requests() -> dict[str, Requests]:
    """Return the requests of all installed languages, by the language's code."""
    return {
        code: requests(text(code, "calibration.txt"), language(code))
        for code in sorted(installed())
    }
