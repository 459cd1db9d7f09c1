"""Written text without its markup: the characters to say, and where each of them came from.

Blocks are code, JSON and comments, which nobody reads aloud. A clause is never cut inside a block;
a mark replaces code. All other markup lies within one line; `markup.toml` has its patterns. Emoji
and invisible characters are removed too. The many forms of quotes, spaces, digits and letters
become one. This module does not know how anything is pronounced.
"""

# ruff: noqa: RUF001 - the look-alikes are the subject

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from html import unescape
from importlib.resources import files
from typing import Any, NamedTuple

from voiceloop.foreign import JSON, JSON_MAYBE, OpenJson
from voiceloop.languages import installed, language
from voiceloop.languages.spoken import CODE, KNOWN, placed

Filler = Callable[[re.Match[str]], str]


@cache
def _table() -> Mapping[str, Any]:
    file = files("voiceloop.tts") / "markup.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def markup() -> Sequence[tuple[re.Pattern[str], Filler | None]]:
    """Return the compiled patterns of markup, each with the function that replaces its matches. A
    pattern without a function keeps only the text of its group `keep`, if it has one."""
    fillers: Mapping[str, Filler] = {
        "command": _command,
        "entity": lambda match: unescape(match[0]),
        "raised": _raised,
        "subscript": lambda match: " ꜜ" + unicodedata.normalize("NFKC", match[0]).strip("_"),
        "windows_path": lambda match: re.sub(r"\\+", "⧵", match[0]),
    }
    parts = _table()["parts"] | {"STAGE": f"(?-x:{_stage()})"}
    found = list[tuple[re.Pattern[str], Filler | None]]()
    for entry in _table()["markup"]:
        filler = fillers.get(entry.get("function"))
        if "put" in entry:
            filler = partial(_expanded, entry["put"])
        pattern = placed(entry["pattern"], parts)
        found.append((re.compile(pattern, re.VERBOSE | re.MULTILINE), filler))
    return found


def _expanded(template: str, match: re.Match[str]) -> str:
    return match.expand(template)


def _command(match: re.Match[str]) -> str:
    return _table()["commands"].get(match[1], f" {match[1]} ")


def _raised(match: re.Match[str]) -> str:
    """Return the plain form of a superscript: ² or ³, the charge of an ion, or ^ and an
    exponent."""
    exponent = unicodedata.normalize("NFKC", match["exponent"]).replace("−", "-")
    if exponent in ("2", "3"):
        return "²³"[int(exponent) - 2]
    if exponent[-1] in "+-":
        return f" {exponent[:-1]}" + {"+": "+", "-": "⁻"}[exponent[-1]]
    return f"^{exponent}"


def _stage() -> str:
    """Return a pattern of stage directions such as `sighs deeply`, in all installed languages. In
    brackets or stars they are not said. Nouns and commands, as in `*Beat* the eggs`, count only if
    no small letter follows."""
    known = [spoken.stage for code in installed() if (spoken := language(code).spoken)]
    verbs, acting, sounds, acted = (
        "|".join(one[kind] for one in known if kind in one)
        for kind in ("verbs", "acting", "sounds", "acted")
    )
    return (
        rf"(?:(?i:(?:[^\W\d_]{{1,20}} )?(?:(?:{verbs})(?:s|es|ing)|{acting})"
        r"(?: [^*_\[\]()\n]{1,40})?)"
        rf"|(?i:(?:[^\W\d_]{{1,20}} )?(?:{verbs}|{sounds})(?: \w+ing| \w+mente| \w+ly)?)"
        rf"(?=[*_)\]]++(?!\s*[a-zà-ÿ:]))|(?:{acted}) [^*_\[\]()\n]{{2,40}})"
    )


_BLOCK = re.compile(rf"`{{3,}}|~{{3,}}|<!--|<(script|style)\b|(?P<json>{JSON.pattern})")


class SkippedText(NamedTuple):
    """A stretch of written text that nobody reads aloud."""

    start: int
    end: int | None
    """Index after the stretch; None if its end has not been written yet."""
    is_code: bool
    """False for a comment or an empty stretch, which need not be mentioned."""


def blocks(written: str) -> Iterator[SkippedText]:
    """Yield the blocks of code, JSON and comments, in order. Code between three backticks on one
    line is read aloud, so it is no block."""
    at = 0
    while opening := _BLOCK.search(written, at):
        start, mark = opening.span()[0], opening[0]
        end: int | None
        if opening["json"]:
            end, empty = OpenJson(start).end(written), False
        else:
            closing = {"<!--": "-->"}.get(mark) or (f"</{opening[1]}>" if opening[1] else mark)
            close = written.find(closing, opening.end())
            body = written[opening.end() : None if close < 0 else close]
            end = None if close < 0 else close + len(closing)
            line, fenced = "\n" not in body, mark[0] in "`~"
            if fenced and line and end is not None and body.strip():
                at = end
                continue
            # The first line of a fence names the language.
            shown = body.partition("\n")[2] if fenced else body
            empty = mark == "<!--" or not shown.strip()
        yield SkippedText(start, end, not empty)
        if end is None:
            return
        at = end


def behind_blocks(head: str) -> str | None:
    """Return the part of `head` after its last block. None if a block is open at the end of `head`,
    or may have begun there."""
    if (maybe := JSON_MAYBE.search(head)) and maybe[0]:
        return None
    end: int | None = 0
    for block in blocks(head):
        end = block.end
    return None if end is None else head[end:]


class PlainText(NamedTuple):
    """A text without markup, and where its characters came from."""

    text: str
    at: list[int]
    """For each character of `text`, the index in the written text after the characters that it
    replaces."""


def plain(written: str) -> PlainText:
    """Return the characters of `written` that are said, in unified forms; `CODE` replaces code."""
    text = _without_blocks(written)
    for pattern, filler in markup():
        text = _rewrite(text, pattern, filler)
    return _unify(text)


def _without_blocks(written: str) -> PlainText:
    text, at, done = "", list[int](), 0
    for block in blocks(written):
        end = len(written) if block.end is None else block.end
        filler = f" {CODE} " if block.is_code else " "
        text += written[done : block.start].replace(CODE, " ") + filler
        at += [*range(done + 1, block.start + 1), *[end] * len(filler)]
        done = end
    rest = written[done:].replace(CODE, " ")
    return PlainText(text + rest, at + list(range(done + 1, len(written) + 1)))


def _rewrite(source: PlainText, pattern: re.Pattern[str], filler: Filler | None) -> PlainText:
    text, at, done = "", list[int](), 0
    for match in pattern.finditer(source.text):
        text += source.text[done : match.start()]
        at += source.at[done : match.start()]
        if filler:
            new = filler(match)
            text += new
            at += source.at[match.end() - 1 : match.end()] * len(new)
        elif "keep" in pattern.groupindex:
            start, end = match.span("keep")
            text += source.text[start:end]
            at += source.at[start:end]
        done = match.end()
    return PlainText(text + source.text[done:], at + source.at[done:])


def _unify(source: PlainText) -> PlainText:
    text, at = list[str](), list[int]()
    for char, end in zip(source.text, source.at, strict=True):
        if text and unicodedata.combining(char):
            # A separate accent joins its letter if the two make one character.
            joined = unicodedata.normalize("NFC", text[-1] + char)
            if (
                "\u0300" <= char <= "\u036f"
            ):  # such accents are dropped if they make no character with the letter
                joined = joined[0]
            text[-1:] = joined
            at[-1:] = [end] * len(joined)
            continue
        new = _plain_form(char, bool(text) and text[-1].isdigit())
        if new in (" ", "\n") and text and text[-1].isspace():
            text[-1] = "\n" if "\n" in text[-1] + new else " "  # a line break is not lost
            at[-1] = end
            continue
        text += new
        at += [end] * len(new)
    return PlainText("".join(text), at)


@cache
def _unified() -> Mapping[str, str]:
    return {char: form for chars, form in _table()["unified"].items() for char in chars}


def _plain_form(char: str, after_digit: bool) -> str:
    """Return the plain form of a character. It is empty for a character that only changes how other
    characters look, and a space for a character that is not said. `after_digit` says whether the
    character follows a digit."""
    if " " <= char <= "~" or char in KNOWN or char == CODE:
        return char
    if char in _unified():
        return _unified()[char]
    kind = unicodedata.category(char)
    if kind in {"Cf", "Mn", "Me", "Sk"} and not unicodedata.combining(char):
        return ""
    if unicodedata.decomposition(char).startswith("<fraction>"):
        return " " * after_digit + unicodedata.normalize("NFKC", char).replace("⁄", "/")
    if kind[0] in "LMN":
        return "".join(c for c in unicodedata.normalize("NFKC", char) if c.isalnum() or c in " '-")
    if kind[0] == "P":  # a wide form of an ASCII mark
        form = unicodedata.normalize("NFKC", char)
        return form if form.isascii() else " "
    return unicodedata.normalize("NFKC", char) if char in "℃℉" else " "
