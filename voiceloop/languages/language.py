"""Languages: words to compare with recognised words, rules for speaking, and where they come from.

Each language is a *pack*: a package with tables in TOML, and with the little code that tables
cannot express. English is `voiceloop.languages.en`; other packs are distributions of their own,
which register by entry point. The modules of `languages` know nothing of audio, models or turns.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from itertools import product
from typing import Any

import msgspec

from voiceloop.languages.numbers import Numbers
from voiceloop.languages.spoken import Rules, SpeakingRules

AUTO = "auto"
"""Value in place of the code of a language. It means that the recogniser detects the language."""
PACKS = {"de": "German", "es": "Spanish"}
"""Names of the languages whose pack is outside of the package, in `packs/`, by code."""
GROUP = "voiceloop.languages"
"""Group of entry points. The name of each is a code, and its object a `Language`."""

START, NUMBER = "^", "#"
"""Symbols in endings: `START` stands for the beginning of a turn, `NUMBER` for any number in
digits."""

_WORD = re.compile(r"[^\W_]+(?:['.,:-][^\W_]+)*")
_TYPOGRAPHIC = str.maketrans({"’": "'"})  # noqa: RUF001 - the curly apostrophe is meant

MOST_AGREEING = 8
"""Maximum number of words in a turn that counts as a yes."""

_HUMS = frozenset("ah aha aw aww ha hm hmm mhm mm mmm oh".split())
INTERNATIONAL = _HUMS | {"ew", "ok", "okay"}
"""Backchannels that listeners use in many languages."""
_HUM = re.compile(r"[hmn]{2,}|[aeuäö]h[hmn]+|(?:h?[aeouäö]{1,3}h+)+|(h[aeiou])\1+h?")
"""How recognisers write hums and laughs: "mmmm", "nmm", "uhm", "uhhuh", "ahh", "haha"."""


def is_hum(word: str) -> bool:
    """Return whether `word`, in the spelling of `asr.transcript.normalise`, is a hum, a laugh or a
    sigh in any language: a sound that a listener makes, and that answers nothing."""
    return word in _HUMS or _HUM.fullmatch(word) is not None


FINAL = ".?!…,;:"
"""Punctuation at the end of a transcript. Whisper writes some after any pause, so it does not tell
whether a turn is over."""


def bare(text: str) -> str:
    """Return `text` without the punctuation at its end."""
    return text.rstrip(FINAL + " ")


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language. With a code alone, it is a language that voiceloop knows nothing about.

    An *ending* is the last word of an utterance, or its last few words, in lower case and separated
    by single spaces. It may contain `START` and `NUMBER`. The class has many fields, because
    everything special about a language is here.
    """

    code: str
    """Two letters of ISO 639-1."""
    unfinished: frozenset[str] = frozenset()
    """Endings after which hardly any user has finished. Empty if voiceloop knows no endings in this
    language."""
    finished: frozenset[str] = frozenset()
    """Exceptions to `unfinished`: longer endings after which the user may well have finished."""
    backchannels: frozenset[str] = INTERNATIONAL
    """Words such as `yeah` that listeners say without wanting the floor, in the spelling of
    `asr.transcript.normalise`."""
    consent: frozenset[str] = frozenset({"ok", "okay"})
    """Words and short phrases that say yes to a question, in the spelling of
    `asr.transcript.normalise`."""
    courtesies: frozenset[str] = frozenset()
    """Words and phrases that may stand beside a yes without changing it, such as `please`, in the
    spelling of `asr.transcript.normalise`."""
    articles: frozenset[str] = frozenset()
    """Words that recognisers may write for a cough, in the spelling of
    `asr.transcript.normalise`."""
    sample: str = "Hello! This is how I sound."
    """Text that a voice says when somebody tries it out."""
    apology: str = ""
    """Text that is said when a reply fails; empty says nothing."""
    loads: str = ""
    """Text that is said when a reply waits until its model is loaded; empty says nothing."""
    nothing: str = ""
    """Text that is said when a reply contains nothing to say; empty says nothing."""
    done: str = ""
    """Text that is said in place of `nothing` if a call of a tool has succeeded in the reply."""
    welcome: str = ""
    """Text that is said when an earlier conversation goes on; empty says nothing."""
    asks: str = "{call}: ok?"
    """Question whether a tool may run. `{call}` stands for its name and arguments."""
    left_out: str = "+ {count}"
    """Words for the `{count}` words that a question leaves out of a long argument."""
    truth: tuple[str, str] = ("false", "true")
    """Words for the values false and true of an argument."""
    spoken: SpeakingRules | None = None
    """Rules for saying written text. None leaves that to the synthesizer."""

    def is_backchannel(self, word: str) -> bool:
        """Return whether `word`, in the spelling of `asr.transcript.normalise`, is a backchannel or
        a hum."""
        return word in self.backchannels or is_hum(word)

    def asks_for_more(self, text: str) -> bool:
        """Return whether the user is likely to say more after `text`. The longest known ending of
        `text` decides; if no ending is known, the answer is no. If `text` has no words, the answer
        is yes, unless the language has no endings."""
        said = ending(text)
        for length in range(len(said), 0, -1):
            tail = " ".join(said[-length:])
            if tail in self.finished:
                return False
            if tail in self.unfinished:
                return True
        return bool(self.unfinished) and len(said) == 1

    def agrees(self, text: str) -> bool:
        """Return whether `text` says yes and nothing else, e.g. `yes please`. "Sure?" and a sign
        such as a crossed-out hand do not."""
        if any(sign == "?" or unicodedata.category(sign).startswith("S") for sign in text):
            return False
        # Punctuation may stand alone, but a longer text says more than yes.
        pieces = text.split(maxsplit=2 * MOST_AGREEING)[: 2 * MOST_AGREEING + 1]
        words = [word for word in map(_plain, pieces) if word]
        if len(words) > MOST_AGREEING or len(pieces) > 2 * MOST_AGREEING:
            return False
        said, phrases = " ".join(words), self.consent | self.courtesies
        longest_first = sorted(phrases, key=len, reverse=True)
        one = "|".join(map(re.escape, longest_first))
        return any(
            re.fullmatch(rf"(?:(?:{one}) )*{re.escape(yes)}(?: (?:{one}))*", said)
            for yes in self.consent
        )


LONGEST = 6
"""Maximum number of words in an ending, including `START`."""


def _plain(word: str) -> str:
    """Return a word in the spelling of `asr.transcript.normalise`."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    return "".join(character for character in folded if character.isalnum())


def ending(text: str) -> Sequence[str]:
    """Return the last words of `text` in the form of an ending, at most `LONGEST`."""
    words = _WORD.findall(text.lower().translate(_TYPOGRAPHIC))
    said = [START, *(NUMBER if word[0].isdecimal() else word for word in words)]
    return said[-LONGEST:]


def endings(*patterns: str) -> frozenset[str]:
    """Expand `patterns` into all endings that have one of the words separated by `|` at each place.

    `who|where is` -> who is, where is
    """
    return frozenset(
        " ".join(words)
        for pattern in patterns
        for words in product(*(place.split("|") for place in pattern.split()))
    )


# ---- packs


@cache
def installed() -> Mapping[str, EntryPoint]:
    """Return the entry points of the languages that are installed, by code; English comes first."""
    english = EntryPoint("en", "voiceloop.languages.en:ENGLISH", GROUP)
    return {"en": english} | {entry.name: entry for entry in entry_points(group=GROUP)}


def primary(code: str) -> str:
    """Return a code without its region: `de-AT` and `DE_at` give `de`."""
    return code.replace("_", "-").partition("-")[0].lower()


def language(code: str) -> Language:
    """Return the language of a code such as `de`, `de-AT` or `en_us`. For a code without a pack,
    or for any other text, return a language that voiceloop knows nothing about."""
    plain = primary(code)
    return installed()[plain].load() if plain in installed() else Language(plain)


def missing(code: str, known: Container[str]) -> str:
    """Return the warning for the user that a language has a pack, which is not one of the `known`
    ones, and how to install it; empty if there is nothing to warn of."""
    plain = primary(code)
    if plain in known or plain not in PACKS:
        return ""
    return (
        f"the pack for {PACKS[plain]} is not installed, so its numbers, requests and ends of turns "
        f"are not known; in a checkout of voiceloop: pip install packs/lang-{plain}"
    )


def load(package: str, numbers: Numbers, own: Rules) -> Language:
    """Make the language of a pack, which is called `package`, from `language.toml` and from its own
    rules."""
    found = tomllib.loads(_text(package, "language.toml"))
    found |= {key: endings(*found[key]) for key in ("unfinished", "finished")}
    found["spoken"] |= {"numbers": numbers, "own": own}
    return msgspec.convert(found, Language)


def table(code: str, name: str) -> dict[str, Any]:
    """Read the table `name`.toml of the pack of an installed language."""
    return tomllib.loads(text(code, f"{name}.toml"))


def text(code: str, file: str) -> str:
    """Read a file of the pack of an installed language."""
    return _text(installed()[code].module, file)


def _text(package: str, file: str) -> str:
    return (files(package) / file).read_text(encoding="utf-8")
