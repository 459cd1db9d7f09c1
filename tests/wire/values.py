"""Values of the wire's types, drawn from the types themselves: a new event has samples at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from msgspec import NODEFAULT, Meta, UnsetType

from voiceloop.settings.schema import default_of, hints_of, is_struct, members
from voiceloop.wire.items import LENGTH, LETTERS, PARTS, AudioBytes, Message, Role, plain
from voiceloop.wire.settings import SessionSettings

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


def written(value: Any) -> Any:
    """`value` as a peer reads it."""
    return json.loads(json.dumps(plain(value)))


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of type `hint`, within its bounds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _within(*arguments)
    if origin in (Union, UnionType):
        return st.one_of([values(member) for member in arguments if member is not UnsetType])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[values(entry) for entry in arguments])
    if origin is Mapping:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if is_struct(hint):
        return objects(hint)
    plainly: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: st.integers(0, 2**31),
        float: st.floats(0, 1e9),
        bool: st.booleans(),
        bytes: PCM,
        AudioBytes: PCM.map(AudioBytes),
        NoneType: st.none(),
        object: JSON,
    }
    return plainly[hint]


def objects(kind: Any) -> st.SearchStrategy[Any]:
    """Wire objects of class `kind`."""
    keys = {name: values(hint) for name, hint in hints_of(kind).items()}
    if kind is SessionSettings:  # of the other type less is told
        keys["type"] = st.just("realtime")
    if kind is not Message:
        return st.builds(kind, **keys)
    return st.one_of([st.builds(kind, **(keys | _role(role, objects))) for role in PARTS])


def messages(hint: Any) -> st.SearchStrategy[Any]:
    """JSON that a client may write for type `hint`, keys with a default given or left out."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_struct(hint):
        if hint is Message:
            return st.one_of([_object(hint, _role(role, messages)) for role in PARTS])
        return _object(hint, {})
    if origin in (Union, UnionType):
        return st.one_of([messages(member) for member in arguments if member is not UnsetType])
    if origin is Annotated and get_origin(arguments[0]) is tuple:
        return messages(arguments[0])
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(messages(arguments[0]), max_size=3)
    return values(hint).map(written)


def _object(kind: Any, known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """JSON for an object, of whose keys some are `known`."""
    # What only the server sets can be anything in an update.
    given = {name: one for name, one in hints_of(kind).items() if Any not in members(one)}
    keys = {name: messages(one) for name, one in given.items()} | known
    needed = {name for name in keys if default_of(kind, name) is NODEFAULT}
    config = kind.__struct_config__
    tags = {config.tag_field: st.just(config.tag)} if config.tag_field else {}
    return st.fixed_dictionaries(
        tags | {name: key for name, key in keys.items() if name in needed},
        optional={name: key for name, key in keys.items() if name not in needed},
    )


def _role(role: Role, made: Any) -> dict[str, st.SearchStrategy[Any]]:
    """What goes together in a message: who says it, and its parts as `made`."""
    parts = st.lists(st.one_of([made(kind) for kind in PARTS[role]]), max_size=3)
    return {"role": st.just(role), "content": parts.map(tuple) if made is objects else parts}


def _within(base: Any, *marked: object) -> st.SearchStrategy[Any]:
    for mark in marked:
        if isinstance(mark, Meta) and mark.ge is not None and base is int:
            return st.integers(int(mark.ge), int(mark.le or 2**53))
        if isinstance(mark, Meta) and mark.ge is not None:
            return st.floats(mark.ge, mark.le or 1e12)
        if isinstance(mark, Meta) and mark.max_length is not None and base is str:
            return TEXT
    return values(base)
