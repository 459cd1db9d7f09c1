"""A strict parser of JSON objects that checks limits before it parses.

Messages come from strangers. So depth and number of values are limited before a parser builds
anything: they are counted in the text without its strings. Some valid JSON is refused as well,
since nobody can use it: duplicate keys, halves of surrogate pairs, and numbers that are too large.
This module does not know the events.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

from voiceloop.errors import ProtocolError
from voiceloop.settings.schema import shown

MAX_CHARACTERS = 4 * 2**20
"""Maximum length of a message, in characters: enough for 65 s of PCM16 in base64, or for 393 s of
G.711."""
MAX_DEPTH = 32
"""Maximum number of levels of nested objects and lists in a message."""
MAX_VALUES = 20_000
"""Maximum number of values in a message."""
MAX_INTEGER = 2**53
"""Largest absolute value of an integer. JavaScript does not represent larger ones exactly."""

# Possessive quantifiers: a string without an end costs one pass, not one pass per quote.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse_object(text: str) -> dict[str, Any]:
    """Parse `text` as a JSON object.

    Raises ProtocolError if it is not JSON, is not an object, or exceeds a limit of this module.
    """
    if len(text) > MAX_CHARACTERS:
        raise refused(
            f"the message has {len(text)} characters, and {MAX_CHARACTERS} are the most",
            "send long audio in pieces",
        )
    _measure(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise refused(f"the message is not JSON: {error.msg}", "send one JSON object") from None
    if not isinstance(value, dict):
        raise refused("the message is not a JSON object", "send one JSON object")
    found = cast("dict[str, Any]", value)
    _check_texts(found)
    return found


def refused(message: str, hint: str = "") -> ProtocolError:
    """Return the error for a message that is not JSON, or is refused by this module."""
    return ProtocolError(message, hint, code="invalid_json")


def _measure(text: str) -> None:
    """Raise ProtocolError if `text` is nested too deep or has too many values. Brackets and commas
    within strings do not count."""
    if sum(map(text.count, ",[{")) <= MAX_DEPTH:
        return  # most messages pass even when characters inside strings are counted
    # A value has at most 4 quotes: its key's and its own. This check also bounds the regex's work.
    if text.count('"') - text.count('\\"') > 4 * MAX_VALUES:
        raise refused(f"the message has more than {MAX_VALUES} values")
    skeleton = _STRING.sub("", text)
    if skeleton.count(",") + skeleton.count("[") + skeleton.count("{") > MAX_VALUES:
        raise refused(f"the message has more than {MAX_VALUES} values")
    depth = 0
    for bracket in _BRACKET.findall(skeleton):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise refused(f"the message is nested deeper than {MAX_DEPTH} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise refused(f"the key {shown(key)} occurs twice in one object")
        found[key] = value
    return found


def _constant(name: str) -> NoReturn:
    raise refused(f"{name} is not a JSON number")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise refused(f"the number {shown(digits)} is too large")
    return value


def _integer(digits: str) -> int:
    # Check the length first: Python is slow with long integers, and refuses very long ones.
    if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
        raise refused(f"the number {shown(digits)} is too large")
    return int(digits)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_constant=_constant,
    parse_float=_float,
    parse_int=_integer,
)


def _check_texts(value: object) -> None:
    """Raise ProtocolError for half of a surrogate pair, which JSON can escape but UTF-8 cannot."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += cast("dict[str, Any]", one).keys()
            waiting += cast("dict[str, Any]", one).values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and not one.isascii():
            try:
                one.encode()
            except UnicodeEncodeError:
                raise refused("the message contains half of a surrogate pair") from None
