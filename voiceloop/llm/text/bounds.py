"""Upper bounds of the size of what an operation of a chat template makes, known before it runs.

A size is a number of characters, entries or bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sized
from typing import Any

LARGEST = 4_000_000
"""Maximum size of a value that a template may make."""
_OTHER = 64
"""Size of a value of another type, written as text."""
_BIT = 16
"""Size of a bit of a product, because dividing large numbers takes long."""
_QUICK = 1000
"""Number of steps of a search or a comparison that count as one of other work."""
_FIELD = re.compile(r"[%{]")
_WIDTH_GIVEN = re.compile(r"\*|:[^{}]*\{")
_DIGITS = re.compile(r"\d+")


def size(value: Any) -> int:
    """Return the size of a value, without that of its entries."""
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, Sized) else 0


def written(value: Any) -> int:
    """Return the number of characters of a value that is written as text, entries and all. The
    count ends soon after `LARGEST`, because entries may contain the same value again and again."""
    found, rest = 0, [value]
    while rest and found <= LARGEST:
        one = rest.pop()
        if isinstance(one, str):
            found += len(one)
            continue
        if isinstance(one, Mapping):
            rest.extend(one.keys())
            rest.extend(one.values())
        elif isinstance(one, Collection) and not isinstance(one, range):
            rest.extend(one)
        found += 4 * (size(one) or _OTHER)
    return found


def product(operator: str, left: Any, right: Any) -> int:
    """Return a bound of the size of a sum, product, power or formatted text."""
    whole = isinstance(left, int) and isinstance(right, int)
    match operator:
        case "**":
            return _BIT * left.bit_length() * abs(right) if whole else 0
        case "%":
            arguments = right if isinstance(right, tuple) else (right,)
            return _formatted(left, *arguments) if isinstance(left, str) else 0
        case "+":
            return size(left) + size(right)
        case _ if whole:
            return _BIT * (left.bit_length() + right.bit_length())
        case _:
            times, text = (left, right) if isinstance(left, int) else (right, left)
            return size(text) * times if isinstance(times, int) else 0


def of_filter(name: str, value: Any, *given: Any, **named: Any) -> int:
    """Return a bound of the size of what the filter `name` makes of `value`."""
    return _bound(name, value, *given, *named.values())


def of_method(name: str, owner: Any, *given: Any, **named: Any) -> int:
    """Return a bound of the size of what the method `name` of `owner` returns."""
    if name == "join" and given:
        return _joined(given[0], owner)
    return _bound(name, owner, *given, *named.values())


def _bound(name: str, value: Any, *given: Any) -> int:
    largest = max((abs(one) for one in given if isinstance(one, int)), default=0)
    known = _BOUNDS.get(name)
    return max(largest, known(value, *given) if known else size(value))


def _formatted(text: Any, *given: Any) -> int:
    """Each field may have any of the widths in `text` or, where it says so, any that is given, and
    write any of the values."""
    text, most = str(text), max(map(written, given), default=0)
    wide = f"{text} {given}" if most <= LARGEST and _WIDTH_GIVEN.search(text) else text
    each = most + max((int(one[0][:20]) for one in _DIGITS.finditer(wide)), default=0)
    return len(text) + sum(1 for _ in _FIELD.finditer(text)) * each


def _joined(items: Any, between: Any = "", *_: Any) -> int:
    return written(items) + size(items) * size(between)


def _replaced(text: Any, old: Any = "", new: Any = "", *_: Any) -> int:
    text, old = str(text), str(old)
    return len(text) + text.count(old) * size(new)


def _indented(text: Any, width: Any = 4, *_: Any) -> int:
    each = width if isinstance(width, int) else size(width)
    return size(text) + (str(text).count("\n") + 1) * each


def _tabs(text: Any, width: Any = 8, *_: Any) -> int:
    return size(text) + str(text).count("\t") * (width if isinstance(width, int) else 0)


def _json(value: Any, *given: Any) -> int:
    indents = [one if isinstance(one, int) else size(one) for one in given]
    return written(value) * (2 + max(indents, default=0))


def _wrapped(text: Any, *given: Any) -> int:
    return size(text) * (1 + max((len(one) for one in given if isinstance(one, str)), default=0))


def _searched(text: Any, *given: Any) -> int:
    return size(text) + size(text) * max(map(size, given), default=0) // _QUICK


def _copied(value: Any, *_: Any) -> int:
    return written(value) + size(value) * written(value) // _QUICK


def _whole(value: Any, *_: Any) -> int:
    return written(value)


_BOUNDS: Mapping[str, Callable[..., int]] = {
    "format": _formatted,
    "format_map": _formatted,
    "join": _joined,
    "replace": _replaced,
    "indent": _indented,
    "expandtabs": _tabs,
    "tojson": _json,
    "translate": _wrapped,
    **dict.fromkeys(("string", "pprint", "xmlattr", "urlencode", "escape", "e"), _whole),
    **dict.fromkeys(("unique", "sort", "min", "max", "groupby", "dictsort"), _whole),
    **dict.fromkeys(("eq", "==", "equalto", "ne", "!=", "lt", "<", "le", "<=", "in"), _whole),
    **dict.fromkeys("trim strip lstrip rstrip rfind rindex rsplit rpartition".split(), _searched),
    **dict.fromkeys(("wordwrap", "striptags", "urlize", "sum", "int"), _copied),
}
"""Bounds of filters, tests and methods of text. Others make nothing larger than their value, or
than the largest number that they are given."""
