"""Written text without its markup: the characters to say, and where each of them came from.

Blocks are code, JSON and comments, which nobody reads aloud. A clause is never cut inside a block;
a mark replaces code. All other markup lies within one line. The patterns of `markup` remove it.
They are applied in order, and their order matters. Emoji and invisible characters are removed too.
The many forms of quotes, spaces, digits and letters become one. This module does not know how
anything is pronounced.
"""

# ruff: noqa: RUF001 - the look-alikes are the subject

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import unescape
from typing import NamedTuple

from voiceloop.foreign import JSON, JSON_MAYBE, OpenJson
from voiceloop.languages import installed, language
from voiceloop.languages.spoken import CODE, KNOWN

Filler = str | Callable[[re.Match[str]], str]

_COMMANDS = {
    **dict.fromkeys(("times", "cdot", "ast"), " × "),
    "div": " ÷ ",
    "pm": " ± ",
    **dict.fromkeys(("le", "leq"), " ≤ "),
    **dict.fromkeys(("ge", "geq"), " ≥ "),
    **dict.fromkeys(("ne", "neq"), " ≠ "),
    "approx": " ≈ ",
    **dict.fromkeys(("to", "rightarrow"), " → "),
    **dict.fromkeys(("Rightarrow", "implies"), " ⇒ "),
    **{"sum": " ∑ ", "prod": " ∏ ", "int": " ∫ ", "partial": " ∂ ", "in": " ∈ ", "infty": " ∞ "},
    **dict.fromkeys(("circ", "degree"), "°"),
    **dict.fromkeys("left right big quad qquad displaystyle limits begin end".split(), " "),
}
"""Signs for commands of LaTeX. Other commands are said by name."""


def _raised(exponent: str) -> str:
    """Return the plain form of a superscript: ² or ³, the charge of an ion, or ^ and an
    exponent."""
    if exponent in ("2", "3"):
        return "²³"[int(exponent) - 2]
    if exponent[-1] in "+-":
        return f" {exponent[:-1]}" + {"+": "+", "-": "⁻"}[exponent[-1]]
    return f"^{exponent}"


_INLINE = "a|b|i|u|s|em|strong|code|span|sub|sup|small|mark|kbd|speak"
"""Tags that may stand inside words. All other tags separate words."""
_TAG = r"(?:(?<![\w)])</?{name}\b[^<>\n]*>|</?{name}(?:\s[^<>\n]*=[^<>\n]*|\s*/?)>)"
"""Pattern of a tag. Right after a word, attributes must have values: `x<y and z>3` contains no
tag."""
_MATH_CHARS = 60
"""Maximum number of characters in a formula between dollar signs. Two dollar signs that are further
apart may belong to two prices."""

_LINK = (
    r"!?\[(?P<keep>[^\[\]\n]*)\]"
    r"\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: (?:\"[^\"\n]*\"|'[^'\n]*'))?\)"
)


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


_MEANT = (
    r"[^*_\[\]()\n]{1,60}[*_]{1,3}[:\"”]|[A-ZÄÖÜ]\w{1,20}(?:ing|en)[*_]{1,3}\s+[a-zà-ÿ]"
    r"|(?<=[*_]{2})[A-ZÄÖÜ]\w{1,20}(?<!s)[*_]"
)
"""Emphasis that is no stage direction: before a colon or within quotes, or a noun, as in `*Yawning*
is contagious` and in `**Coughing** - cover your mouth`."""
_MARKUP: tuple[tuple[str, Filler], ...] = (
    (r"^[ \t]*\[[^\[\]^\n][^\[\]\n]*\]:[ \t]+\S+.*$", ""),
    (r"^[ \t]*\[\^[^\[\]\n]+\]:[ \t]*", ""),
    (_LINK, ""),
    (_LINK, ""),  # an image may have been the text of a link
    (r"(?<=\w)\[(0)\]|(?<=\b[A-Za-z])\[(\d+)\]", lambda match: f" {match[1] or match[2]} "),
    (r"\[(?:\d+|\^[^\[\]\n]+)\]", ""),
    (r"!?\[(?P<keep>[^\[\]\n]+)\]\[[^\[\]\n]*\]", ""),
    (
        r"\[{STAGE}\](?!\()|(?<![^\W_] )\({STAGE}\)"
        rf"|(?<![^\W_] )(?<![\w*])([*_]{{1,3}})(?!{_MEANT}){{STAGE}}\1(?![\w*])",
        " ",
    ),
    (r"<(?P<keep>https?://[^<>\s]+|[^<>\s@]+@[^<>\s@]+)>", ""),
    (r"<sup>([+-]?\d+|n)</sup>", lambda match: _raised(match[1])),
    (rf"<\|[^<>|\n]{{1,40}}\|?>|{_TAG.format(name=f'(?:{_INLINE})')}|\x1b\[[\d;]*[A-Za-z]", ""),
    (_TAG.format(name=r"[A-Za-z][\w:-]*"), " "),
    (r"\b(?:mailto|tel|sms):(?=\S)", ""),
    (r"(?<=\()\*\s?(?=\d{1,4}[., )])|(?<![^\n])\*\s?(?=\d{4}, †)", "✶ "),
    (r"(?<=\d)(?:,(?:--?|[–—])(?!\S)|[.,][-–—](?=\s?(?:€|EUR|Euro|CHF)))", ""),
    (r"(?<=[\dn)])!(?=\s?[=+×*/÷<>≤≥)])", " ꜝ"),
    (
        r"(?<![|\w])\|([-−\w.+ ]{1,20})\|(?:(?=\s?[=<>≤≥+])|(?<=[=<>] \|\w\|))",
        lambda match: f" ∣ {match[1]} ",
    ),
    (r"§(?=\s?§)", ""),
    (r"(?<=\bI )[❤♥]\ufe0f?(?= \w)", "love"),
    (r"\bdata:[\w/+.;=-]{1,100},[A-Za-z0-9+/=_%-]*", CODE),
    # formulas
    (r"\\[\[\]()]|\${2,}", " "),
    (
        rf"(?<![\w$\\])\$(?=[A-Za-z\\(])(?P<keep>[^$\n]{{0,{_MATH_CHARS}}}[^$\s])\$(?![\w$])",
        "",
    ),
    (
        r"(?<![\w$\\])\$(?P<keep>\d[^$\n,;:.!?]{0,40}[\\^=+*/_][^$\n,;:.!?]{0,40})\$(?![\w$])",
        "",
    ),
    (r"([\^_])\{([^{}\n]*)\}", lambda match: match[1] + match[2]),
    (r"\^(?=\\(?:circ|degree))", ""),
    (r"\\sqrt\{([^{}\n]*)\}", lambda match: f" √ {match[1]} "),
    (r"\\(?:text|math[a-z]+|operatorname)\{(?P<keep>[^{}\n]*)\}", ""),
    (r"\\[dt]?frac\{([^{}\n]*)\}\{([^{}\n]*)\}", lambda match: f"{match[1]} ÷ {match[2]}"),
    (
        r"\b[A-Z]:\\[\w.\\~-]{0,200}",
        lambda match: re.sub(r"\\+", "⧵", match[0]),
    ),
    (r"\\([A-Za-z]+)", lambda match: _COMMANDS.get(match[1], f" {match[1]} ")),
    # arrows
    (r"(?<=[\w)\]}'\"])( ?)(?:<-{1,2}>|<=>)(?= ?[\w(\[{'\"])", " ↔ "),
    (r"(?<=[\w)\]}'\"])( ?)-{1,2}>(?= ?[\w(\[{'\"])", " → "),
    (r"(?<=[\w)\]}'\"] )={1,2}>(?= ?[^\W\d]| ?[(\[{'\"])", " → "),
    (r"(?<=[\w)\]}'\"] )<-{1,2}(?= [\w(\[{'\"])", " ← "),
    (r"^[ \t]*[→⇒➜➔]+[ \t]*", ""),
    (r"[➜➔➡⟶]", "→"),
    (r"Δ(?![α-ωά-ώ])", "∆"),
    (r"∑|Σ(?![α-ωά-ώ])", "∑"),
    # drawn lines
    (
        r"^(?![^\n]*[^\W\d_]{3})[^\n]*(?:/\\|\\/|\\_|_/|_\||\|_|/_|\+--|--\+)[^\n]*$",
        "",
    ),
    (r"^[ \t]*([*_])(?:[ \t]*\1){2,}[ \t]*$", ""),
    (r"^(?=[^\n]*-[ \t]*-[ \t]*-)[ \t|:-]+$", ""),
    # signs of several characters
    (r"(?<=[\d)])\*\*(?=[\d(-])|(?<=\b[A-Za-z])\*\*(?=\d)", "^"),
    (r"(?<=[0-9])(?=[0-9]{0,31}[₀-₉])", " "),
    (
        r"(?:(?<=\blog)|(?<=[0-9] ))[₀-₉]+|(?:(?<=\blog)|(?<=\blog ))_(?=\d)",
        lambda match: " ꜜ" + unicodedata.normalize("NFKC", match[0]).strip("_"),
    ),
    (r"(?<=[\d)])\*(?=\()|(?<=\))\*(?=\d|[a-z]\b)|(?<=\b[a-z])\*(?=[a-z]\b)", "×"),
    (r"!==?(?=\s?[-+\w(.'\"$€£])|(?<=[\w)] )<>(?= [\w(])", "≠"),
    (r"<=(?![=>])|=<(?=\s?[-+.\d])", "≤"),
    (r"(?<![-=])>=(?!=)|(?<![-=<])=>(?=\s?[-+.\d])", "≥"),
    (r"(?<=[\w)\]] )===(?= [\w(\"'-])|(?<=[\w)\]])===(?=[\w(\"'-])", "="),
    (r"(?<!:)([=+&@%^#<>/\\|])\1{2,}", " "),
    (r"(?<==)=|(?<=&)&", ""),
    (
        # a superscript after a word is a footnote, unless it is a negative exponent or charge
        r"(?<![A-Za-zÀ-ɏ]{2})(?<=[\w)])[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻]+"
        r"|(?<=[A-Za-z])⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+|(?<=[A-Za-z])[¹²³⁴⁵⁶⁷]?[⁺⁻]",
        lambda match: _raised(unicodedata.normalize("NFKC", match[0]).replace("−", "-")),
    ),
    (r"(?<=[\d)])\s?[·⋅∙]\s?(?=[\d(]|-\d)|(?<=\b[a-z]) ?[·⋅] ?(?=[a-z]\b)", " × "),
    (r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))", "\u202f"),
    (r"(?<=\d)['’](?=\d{3}(?!\d))", ""),
    (r"^[ \t]*\|[ \t]*|(?:(?<![ \t])[ \t]+)?\|[ \t]*$", ""),
    (r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?)+", ""),
    (r"(?<![^\W_])(?<!\\)_+(?=\S)|(?<=[^\s\\])_+(?![^\W_])", ""),
    (r"(?<![\w)\]\\])\*+(?=\S)|(?<=[^\s\\])\*+(?![\w(\[])", ""),
    (r"~~|`+", ""),
    (r"\\(?P<keep>[\\*_{}\[\]()#+\-.!|>~$])", ""),
    (
        r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});",
        lambda match: unescape(match[0]),
    ),
    # names of emoji, emoticons, hashes, letters that are repeated many times
    (r"(?<![\w:]):[a-z][a-z0-9_+-]{1,30}:(?![\w:])", ""),
    (r"(?<!\S)(?:[:;=]['-]?[()DPpO|\\/\[\]*]+|[xX]D)(?![^\s.,!?])", ""),
    (r"(?<!\b[a-zA-HJ-Z] )(?<!\S)<3(?=\s*(?:[.,!?\n]|$|(?:you|u|this|my|dich|te)\b))", ""),
    (
        r"(?<![\w+/=-])(?=[A-Za-z0-9+/=_-]{32})(?=\d*(?:[A-Za-z+/=_-]+\d+){3})"
        r"[A-Za-z0-9+/=_-]+",
        CODE,
    ),
    (r"(([^\W\d_])\2{2})\2+", lambda match: match[1]),
    (r"([A-Za-zÀ-ɏ]{40})[A-Za-zÀ-ɏ]{24,}", lambda match: match[1]),
)
"""Patterns, each with the filler that replaces its matches. If the filler is empty and the pattern
has a group `keep`, the text of that group stays. {STAGE} stands for a stage direction."""


@cache
def markup() -> Sequence[tuple[re.Pattern[str], Filler]]:
    """Return the compiled patterns of markup with their fillers."""
    stage = _stage()
    return [
        (re.compile(pattern.replace("{STAGE}", stage), re.MULTILINE), filler)
        for pattern, filler in _MARKUP
    ]


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


_UNIFIED = {
    **dict.fromkeys("‘’‛ʼ′", "'"),
    **dict.fromkeys("“”„‟«»‹›″", '"'),
    **dict.fromkeys("‐‑−", "-"),
    **dict.fromkeys("\u2028\u2029\n", "\n"),
    "―": "—",
    "…": "...",
    "、": ",",
    "。": ".",
    "⁄": "/",
    "♯": "#",
    **dict.fromkeys("˚∘", "°"),
}


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


def _rewrite(source: PlainText, pattern: re.Pattern[str], filler: Filler) -> PlainText:
    text, at, done = "", list[int](), 0
    for match in pattern.finditer(source.text):
        text += source.text[done : match.start()]
        at += source.at[done : match.start()]
        if filler == "" and "keep" in pattern.groupindex:
            start, end = match.span("keep")
            text += source.text[start:end]
            at += source.at[start:end]
        else:
            new = filler if isinstance(filler, str) else filler(match)
            text += new
            at += source.at[match.end() - 1 : match.end()] * len(new)
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


def _plain_form(char: str, after_digit: bool) -> str:
    """Return the plain form of a character. It is empty for a character that only changes how other
    characters look, and a space for a character that is not said. `after_digit` says whether the
    character follows a digit."""
    if " " <= char <= "~" or char in KNOWN or char == CODE:
        return char
    if char in _UNIFIED:
        return _UNIFIED[char]
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
