"""Templates of requests, as data: one file for each language. `skills.template` explains how they
are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct, convert


class Templates(Struct, frozen=True, forbid_unknown_fields=True):
    """The templates of requests in one language."""

    leads: str
    """Template of words that people say before a request."""
    tails: str
    """Template of words that people say after a request."""
    named: Mapping[str, str]
    """Templates by name, which other templates call."""
    rules: Mapping[str, Sequence[str]]
    """Templates of each kind of request. Those of earlier kinds are tried first."""
    tools: Mapping[str, str]
    """Beginnings of words in the text of a tool that may fulfil a wish, by the kind of the wish."""
    says: Mapping[str, str]
    """Texts of answers, by name, in addition to those of the language's `Phrases`."""


@cache
def templates(code: str) -> Templates:
    """Read the templates of requests in the language `code`, e.g. `en`."""
    text = Path(__file__).with_name(f"{code}.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), Templates)
