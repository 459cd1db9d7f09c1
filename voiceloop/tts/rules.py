"""The rules by which written things are said: each a pattern and the words for what it matches.

Order matters: at each place the first rule that matches takes its piece, and the last one takes any
character, silently. A rule looks at the text around its piece but takes no more than that. A result
that is only a mark goes to the word before; a line break becomes a period where there is no mark.
Here are the rules that languages share; what differs, and the words, come from `languages`. This
module does not know where the pieces come from.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from voiceloop.languages import Language
from voiceloop.languages.spoken import (
    APART,
    CODE,
    KNOWN,
    LETTER,
    Match,
    Rule,
    Spoken,
    alternatives,
    final,
    written,
)

MARKS = ",;:.!?"
"""From the weakest to the strongest; where several meet, the strongest is kept."""

_Say = Callable[[Spoken, Match], str]
_ADDRESSES: dict[str, tuple[str, _Say]] = {}
_SHARED: dict[str, tuple[str, _Say]] = {}
_PLAIN: dict[str, Rule] = {}
"""Rules that need no words."""


def rules(language: Language) -> dict[str, Rule]:
    """The rules of `language` by name, in the order in which they are tried."""
    spoken = language.spoken
    if spoken is None:
        return {"_place": Rule(_LINK, _place), "_as_written": _AS_WRITTEN, **_PLAIN}

    def filled(shared: dict[str, tuple[str, _Say]]) -> dict[str, Rule]:
        return {
            name: Rule(_filled(pattern, spoken), partial(say, spoken))
            for name, (pattern, say) in shared.items()
        }

    return {**filled(_ADDRESSES), **spoken.own, **filled(_SHARED), **_PLAIN}


def _filled(pattern: str, spoken: Spoken) -> str:
    """`pattern` with what stands in it for the language's own."""
    for name, own in {
        "{NUMBER}": spoken.numbers.number,
        "{CURRENCY}": f"[{''.join(spoken.currencies)}]",
        "{MAGNITUDE}": alternatives(spoken.magnitudes),
        "{UNIT}": alternatives(spoken.units),
        "{SCALE}": "|".join(spoken.scales),
        "{NUMBER_SIGN}": alternatives(spoken.number_signs),
        "{ASIDE}": alternatives(spoken.asides),
        "{DOTTED}": alternatives(spoken.dotted),
        "{UNDOTTED}": alternatives(spoken.undotted),
        "{SIGNS}": re.escape("".join(spoken.signs)),
        "{APART}": APART,
        "{LETTER}": LETTER,
    }.items():
        pattern = pattern.replace(name, own)
    return pattern


def _to(table: dict[str, tuple[str, _Say]], pattern: str) -> Callable[[_Say], _Say]:
    def add(say: _Say) -> _Say:
        table[say.__name__] = (pattern, say)
        return say

    return add


_address = partial(_to, _ADDRESSES)
_rule = partial(_to, _SHARED)


def _plain(pattern: str) -> Callable[[Callable[[Match], str]], Callable[[Match], str]]:
    def add(say: Callable[[Match], str]) -> Callable[[Match], str]:
        _PLAIN[say.__name__] = Rule(pattern.replace("{LETTER}", LETTER), say)
        return say

    return add


# ---- the rules, in the order in which they are tried: addresses, then those of the language


@_address(CODE)
def _code(spoken: Spoken, match: Match) -> str:
    return spoken.code


@_address(r"[^\s@<>\"(),;:\[\]]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
def _email(spoken: Spoken, match: Match) -> str:
    return _spelled(spoken, match[0])


_LINK = (
    r"(?:(?i:[a-z][a-z0-9+.-]{1,20}://)|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_]"
    r"|(?<![\w.])(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|io|ai|dev|app|co\.uk|eu|de|at|ch|es|mx)"
    r"(?![\w-])(?:/[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_])?"
)


@_address(_LINK)
def _link(spoken: Spoken, match: Match) -> str:
    return _spelled(spoken, _place(match))


def _place(match: Match) -> str:
    """The host of an address; all of it where its writer left out what only machines need."""
    scheme, _, address = match[0].rpartition("://")
    whole = not scheme and not address.startswith("www.")
    address = re.sub(r"^[^/?#]*@|^www\.|[?#].*$|/+$", "", address, flags=re.DOTALL)
    return address if whole else re.sub(r"^([^/]+?)(?:/|:\d).*", r"\1", address)


def _spelled(spoken: Spoken, address: str) -> str:
    numbers, said = spoken.numbers, list[str]()
    for part in re.findall(rf"{LETTER}+|\d+|.", address):
        if part.isdecimal():
            said.append(numbers.integer(part) if len(part) <= 2 else numbers.digits(part))
        else:
            said.append(spoken.address_signs.get(part, part if part.isalnum() else ""))
    return " ".join(said)


# ---- numbers


@_rule(
    r"({CURRENCY})\s?({NUMBER})(?:\s?({MAGNITUDE}){APART})?"
    r"|({NUMBER})\s?(?:({MAGNITUDE})\s?)?({CURRENCY})(?!\s?\d)"
)
def _money(spoken: Spoken, match: Match) -> str:
    if match[1]:
        sign, number, magnitude = match.group(1, 2, 3)
    else:
        number, magnitude, sign = match.group(4, 5, 6)
    name, coin = spoken.currencies[sign]
    count = spoken.numbers.count
    if magnitude:
        return f"{count(number, spoken.magnitudes[written(magnitude)])} {name.many}"
    whole, mark, part = number.rpartition(spoken.numbers.decimal)
    if not mark or len(part) != 2:
        return count(number, name)
    if part == "00":
        return count(whole, name)
    coins = count(str(int(part)), coin)
    return f"{count(whole, name)} {spoken.coins} {coins}" if whole.strip("0") else coins


@_rule(r"({NUMBER})\s?%")
def _percent(spoken: Spoken, match: Match) -> str:
    return spoken.numbers.count(match[1], spoken.percent)


@_rule(r"({NUMBER})\s?°\s?({SCALE}){APART}")
def _temperature(spoken: Spoken, match: Match) -> str:
    return f"{spoken.numbers.count(match[1], spoken.degree)} {spoken.scales[match[2]]}"


@_rule(r"({NUMBER})\s?({UNIT})(?:/({UNIT}))?{APART}(?:\.(?=\s+[a-z]))?")
def _measure(spoken: Spoken, match: Match) -> str:
    number, unit, per = match.groups()
    said = spoken.numbers.count(number, spoken.units[unit])
    if per:
        said += f" {spoken.per} {spoken.units[per].one}"
    return said + (final(match) if unit.endswith(".") else "")


@_rule(
    r"(?<=[\d%])\s*=\s*-?(?=\d)|(?<=\d)-(?=[\d.,]+\s*=)|(?<=[\d)])\s+-\s+(?=[\d(])"
    r"|(?<=\b[a-z])\s+-\s+(?=\d|[a-z]\b)"
)
def _arithmetic(spoken: Spoken, match: Match) -> str:
    words = {"=": spoken.equals, "-": spoken.minus}
    return " ".join(words[sign] for sign in re.findall("[=-]", match[0]))


@_rule(r"(?<=[\d%])(?:\s?–\s?|-)(?={CURRENCY}?\d)")
def _range(spoken: Spoken, match: Match) -> str:
    return spoken.to


@_rule(r"(?<![^\s(\[=<>≤≥≈±×÷*/+\"'])-(?={CURRENCY}?\.?\d)")
def _negative(spoken: Spoken, match: Match) -> str:
    return spoken.minus


@_rule(r"(?<=\d)(\s?)[x*](\s?)(?=-?\d)|(?<=[\w)])\s\*\s(?=[\w(])")
def _times(spoken: Spoken, match: Match) -> str:
    return spoken.times if match[0].strip() == "*" or match[1] else spoken.by


@_rule(r"(?<=\d):(?=\d)")
def _ratio(spoken: Spoken, match: Match) -> str:
    return spoken.ratio


@_rule(r"(?<=\d)\s?/\s?(?=\d)")
def _divided(spoken: Spoken, match: Match) -> str:
    return spoken.divided_by if " " in match[0] else spoken.over


@_rule(r"(?<=\w)\s?\^\s?(?=[\w(-])")
def _power(spoken: Spoken, match: Match) -> str:
    return spoken.power


@_rule(r"(?<=[\w)]\s)([<>])(?=\s[\w(-])")
def _comparison(spoken: Spoken, match: Match) -> str:
    return spoken.less if match[1] == "<" else spoken.greater


@_rule(r"(?<!\w)#(?=\d)|№\s?(?=\d)|\b(?:{NUMBER_SIGN})\s?(?=\d)")
def _number_sign(spoken: Spoken, match: Match) -> str:
    return spoken.number


@_rule(r"~(?=\d)")
def _about(spoken: Spoken, match: Match) -> str:
    return spoken.about


@_rule(r"{NUMBER}")
def _number(spoken: Spoken, match: Match) -> str:
    before, after = match.string[: match.start()], match.string[match.end() :]
    return spoken.numbers.standing(match[0], before, after)


@_rule(r"(?<!\w)\.(?=\d)")
def _point(spoken: Spoken, match: Match) -> str:
    return spoken.point


# ---- words


@_rule(r"\b({ASIDE})\.,?")
def _aside(spoken: Spoken, match: Match) -> str:
    return spoken.asides[written(match[1])] + final(match)


@_rule(r"\b({DOTTED})\.|\b({UNDOTTED}){APART}\.?")
def _abbreviation(spoken: Spoken, match: Match) -> str:
    if match[1]:
        return spoken.dotted[written(match[1])] + final(match)
    return spoken.undotted[written(match[2])] + final(match)


@_rule(r"[{SIGNS}]")
def _sign(spoken: Spoken, match: Match) -> str:
    return spoken.signs[match[0]]


@_rule(r"(?<![^\W_])\.(?=[a-zA-Z])|(?<=\w)\.(?=[a-z\d])")
def _dot(spoken: Spoken, match: Match) -> str:
    return spoken.dot


def _as_written(match: Match) -> str:
    return match[0]


_AS_WRITTEN = Rule(
    rf"[^\W_]+(?:['.,:@/_-]+[^\W_]+)*|[%&@#+=<>$*/^~{re.escape(KNOWN[2:])}]", _as_written
)
"""In a language that nothing is known of."""


@_plain(r"(?<![\w.])(?:{LETTER}\.){2,}")
def _initialism(match: Match) -> str:
    return match[0].replace(".", " ").upper().strip() + final(match)


@_plain(r"(?<![\w.'])([A-HJ-Z])\.(?=\s+[A-Z])")
def _initial(match: Match) -> str:
    return match[1]


@_plain(r"{LETTER}+(?:['-]+{LETTER}+)*")
def _word(match: Match) -> str:
    return match[0]


# ---- marks


@_plain(r"[.,;:!?]+")
def _mark(match: Match) -> str:
    mark = max(match[0], key=MARKS.index)
    # Three dots trail off within a sentence and end it only where something new begins.
    goes_on = re.match(r"\s+([^\W\d_])", match.string[match.end() :])
    trails = mark == "." and len(match[0]) > 1 and goes_on and goes_on[1].islower()
    return "," if trails else mark


@_plain(r"\s*(?:--+|[–—])\s*|\s+-(?=\s|$)|(?<=\s)[(\[{]|[)\]}](?=\s+\w)|\|")
def _pause(match: Match) -> str:
    return ","


@_plain(r"\s*\n\s*")
def _line(match: Match) -> str:
    return "\n"


@_plain(r"(?s:.)")
def _silent(match: Match) -> str:
    return ""
