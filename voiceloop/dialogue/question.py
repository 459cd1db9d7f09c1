"""Words the question whether a tool may run: its name and its arguments, by rule.

A model writes both, and it may have been steered. So the question is plain: nothing in it can hide
a part of it from a listener, as markup or a link would.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping

from voiceloop.languages import Language

WHOLE_WORDS = 24
"""Number of words of an argument after which only possible numbers and addresses are said."""
MOST_CHARS = 600
"""Maximum number of characters of a question. A longer one is not asked."""

_UNSAID = re.compile(r"\bhttps?://|[^\w\s.,:@/+%€$£'-]|_|\$(?!\d)|'(?!\w)|-(?!\w)", re.I)
_JOINT = re.compile(r"(?<=[^\W\d])/|/(?=[^\W\d])|(?<=\bwww)\.", re.I)
"""Pattern of a mark that is said as a word of its own. Within a link a voice would leave out what
follows it."""
_TELLING = re.compile(r"[\d@€$£%]|\w[.:]\w")
_NAMING = re.compile(r"(?<!\d):|:(?!\d)")
"""Pattern of a colon that is in no time or ratio. A voice takes `:smile:` and `data:` for names of
what nobody reads aloud."""
_LONG = re.compile(r"[\w+/-]{31}(?=[\w+/-])")
"""Pattern of the beginning of a longer word, which a voice would take for code, or shorten."""


def question(name: str, arguments: Mapping[str, object], language: Language) -> str:
    """Return the question whether the tool `name` may run with `arguments`. It has to be said
    alone. Return an empty text if it would be too long."""
    given = (f"{_said(key, language)}: {_said(one, language)}" for key, one in arguments.items())
    asked = language.asks.format(call=", ".join((_said(name, language), *given)))
    return asked if len(asked) <= MOST_CHARS else ""


def _said(value: object, language: Language) -> str:
    """Return a name or the value of an argument in plain words, and how many are left out."""
    if isinstance(value, bool):
        return language.truth[value]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = _UNSAID.sub(" ", unicodedata.normalize("NFKC", text))
    words = _JOINT.sub(lambda mark: f" {mark[0]} ".replace(".", " "), plain).split()
    kept = words[:WHOLE_WORDS] + [word for word in words[WHOLE_WORDS:] if _TELLING.search(word)]
    left = len(words) - len(kept)
    said = _LONG.sub(r"\g<0> ", _NAMING.sub(" ", " ".join(kept)))
    return said + (f", {language.left_out.format(count=left)}" if left else "")
