"""The text of a message as a JSON object, or one clear error: bounded before it is parsed.

A peer is a stranger. How deep and how full a text is gets measured with its strings taken out,
before a parser builds anything from it; what JSON allows and nobody can use (keys that occur twice,
halves of characters, numbers beyond any float) is refused as well. This module knows no event.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

from voiceloop.errors import ProtocolError
from voiceloop.schema import shown

MAX_CHARACTERS = 4 * 2**20
"""Longest message; in base64 that is 65 seconds of PCM16, and 393 of G.711."""
MAX_DEPTH = 32
"""Deepest nesting of objects and lists."""
MAX_VALUES = 20_000
"""Most values in one message."""
MAX_INTEGER = 2**53
"""Beyond this a JavaScript peer could not have meant the number exactly."""

# Possessive, so a string that never ends costs one pass and not one for each of its quotes.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object that `text` is.

    Raises ProtocolError for everything else: no JSON, no object, or one beyond the limits above.
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
    """The error for a message that is not even JSON one could look at."""
    return ProtocolError(message, hint, code="invalid_json")


def _measure(text: str) -> None:
    """Check depth and number of values, on what is left when the strings are taken out."""
    if sum(map(text.count, ",[{")) <= MAX_DEPTH:
        return  # as in most messages, whatever of these is within strings
    # More quotes than that many keys and texts have; so there is not much to take out either.
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
    # Python refuses to read very long integers, and takes its time for long ones.
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
    """Refuse halves of characters: JSON's escapes can write them, UTF-8 cannot."""
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
