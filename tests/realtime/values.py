"""Values of the wire's types, drawn from the types themselves: a new event has samples at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from hypothesis import strategies as st

from voiceloop.config import Range
from voiceloop.realtime.ids import LENGTH, LETTERS
from voiceloop.realtime.schema import (
    Most,
    Patch,
    default_of,
    hints_of,
    is_told,
    plain,
    tags_of,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PCM = st.binary(max_size=8).map(lambda data: data[: len(data) // 2 * 2])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
IDS = st.text(st.sampled_from(LETTERS), min_size=LENGTH - 5, max_size=LENGTH - 5).map(
    "item_".__add__
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of type `hint`, within its bounds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _within(*arguments)
    if origin in (Union, UnionType):
        return st.one_of([values(member) for member in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[values(entry) for entry in arguments])
    if origin is Mapping:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if is_dataclass(hint):
        return objects(hint)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: st.integers(0, 2**31),
        float: st.floats(0, 1e9),
        bool: st.booleans(),
        bytes: PCM,
        NoneType: st.none(),
        object: JSON,
    }
    return plain[hint]


def objects(kind: Any) -> st.SearchStrategy[Any]:
    """Wire objects of class `kind`."""
    return st.builds(kind, **{name: values(hint) for name, hint in hints_of(kind).items()})


def messages(hint: Any) -> st.SearchStrategy[Any]:
    """JSON that a client may write for type `hint`, keys with a default given or left out."""
    origin, arguments = get_origin(hint), get_args(hint)
    kind = arguments[0] if origin is Patch else hint
    if is_dataclass(kind):
        partial = origin is Patch
        given = {name: one for name, one in hints_of(kind).items() if not is_told(kind, name)}
        keys = {name: messages(_patched(one) if partial else one) for name, one in given.items()}
        needed = {n: key for n, key in keys.items() if default_of(kind, n) is MISSING}
        others = {n: key for n, key in keys.items() if n not in needed}
        tags = {tag: st.just(value) for tag, value in tags_of(kind).items()}
        return st.fixed_dictionaries(tags | needed, optional=others)
    if origin in (Union, UnionType):
        return st.one_of([messages(member) for member in arguments])
    if origin is Annotated and get_origin(arguments[0]) is tuple:
        return messages(arguments[0])
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(messages(arguments[0]), max_size=3)
    return values(hint).map(plain)


def _patched(hint: Any) -> Any:
    """Settings in settings are partial too, where no key of theirs is required."""
    if is_dataclass(hint):
        needed = [name for name in hints_of(hint) if default_of(hint, name) is MISSING]
        return hint if needed else Patch[cast(Any, hint)]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_patched(member) for member in get_args(hint))]  # noqa: UP007
    return hint


def _within(base: Any, *marks: object) -> st.SearchStrategy[Any]:
    for mark in marks:
        if isinstance(mark, Range) and base is int:
            return st.integers(int(mark.low), int(min(mark.high, 2**53)))
        if isinstance(mark, Range):
            return st.floats(mark.low, min(mark.high, 1e12))
        if isinstance(mark, Most) and base is str:
            return TEXT
    return values(base)
