"""Templates of requests, as data: one file for each language. `skills.template` explains how they
are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of requests in one language. Its fields are the tables of a TOML file."""

    leads: str
    """Template of words that people say before a request."""
    tails: str
    """Template of words that people say after a request."""
    more: str
    """Words that mark an amount that is added to another, such as `more`."""
    less: str
    """Words that mark an amount that is taken away from another, such as `earlier`."""
    names: str
    """Beginnings of words that name a timer, an alarm or a reminder."""
    doubts: str
    """Words beside a request by which it may be withdrawn, quoted or conditional."""
    hours: Mapping[str, str]
    """Templates of the parts of the day, by the hour that is meant if none is said."""
    repeats: Mapping[str, str]
    """Templates of repetitions, by their weekdays as digits (Monday is 0). `each` is for weekdays
    that are named in {w:weekday} and other slots."""
    named: Mapping[str, str]
    """Templates by name, which other templates call."""
    rules: Mapping[str, Sequence[str]]
    """Templates of each kind of request. Those of earlier kinds are tried first."""
    guards: Mapping[str, Sequence[str]]
    """Templates of words that are about timers although no rule understands them. They are tried
    last, and kept from the language model, which would claim to have done something."""
    tools: Mapping[str, str]
    """Beginnings of words in the text of a tool that may fulfil a wish, by the kind of the wish."""
    says: Mapping[str, str]
    """Texts of answers, by name, in addition to those of the language's `Phrases`."""


@cache
def templates(code: str) -> Templates:
    """Read the templates of requests in the language `code`, e.g. `en`."""
    text = Path(__file__).with_name(f"{code}.toml").read_text(encoding="utf-8")
    return Templates(**tomllib.loads(text))
