"""Frozen dataclasses as the description of JSON objects.

A field's name is the key, its annotation the type, its default the value where the key is absent,
its docstring the meaning; reading, writing and docs/protocol.md are made from nothing else. `tags`
are constant keys: they are written first, required when read, and tell the members of a union
apart. `unsupported` names keys that the API has and voiceloop has not, with what to do instead.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from voiceloop.config import Range
from voiceloop.realtime.jsontext import shown

T = TypeVar("T")

RATE = 24_000
"""Hertz of all audio on the wire: PCM16, little-endian, mono."""

LOCAL: Mapping[str, object] = {"local": True}
"""Metadata of a field that is not on the wire."""
TOLD: Mapping[str, object] = {"told": True}
"""Metadata of a field that the server tells; a peer that sends it back changes nothing."""
OPTIONAL: Mapping[str, object] = {"optional": True}
"""Metadata of a field that is not written where it is None."""


@dataclass(frozen=True, slots=True)
class Most:
    """Greatest number of characters of a text, or of entries of a list or an object."""

    count: int


@dataclass(frozen=True, slots=True)
class Instead:
    """What to do instead, where a peer asks for a value that is not supported."""

    hint: str


@dataclass(frozen=True, slots=True)
class Patch(Generic[T]):
    """The keys that a partial update of a `kind` gives, and no others."""

    kind: type[T]
    values: Mapping[str, Any]
    """Values by field; those of nested objects are patches in turn."""

    def applied(self, base: object) -> T:
        """`base` with the given keys changed; from the defaults where `base` is not of the kind."""
        start = base if isinstance(base, self.kind) else self.kind()
        changed: dict[str, Any] = {}
        for name, value in self.values.items():
            patch = cast("Patch[Any] | None", value if isinstance(value, Patch) else None)
            changed[name] = patch.applied(getattr(start, name)) if patch else value
        return cast(T, replace(cast(Any, start), **changed))


def kind_of(hint: Any) -> Any:
    """The wire object that `hint` is, or is a patch of."""
    return get_args(hint)[0] if get_origin(hint) is Patch else hint


def tags_of(kind: Any) -> Mapping[str, str]:
    """The constant keys of a wire object."""
    return getattr(kind, "tags", {})


@cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """The types of a wire object's fields, by key."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in _on_the_wire(kind)}


def objects_in(hint: Any) -> list[Any]:
    """The wire objects that a value of type `hint` may be or contain, not looking inside them."""
    if is_dataclass(hint):
        return [hint]
    members = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return [kind for member in members for kind in objects_in(member)]


@cache
def is_told(kind: Any, name: str) -> bool:
    """Whether only the server can set a field."""
    return any(field.name == name and "told" in field.metadata for field in fields(kind))


@cache
def default_of(kind: Any, name: str) -> object:
    """What a field is where its key is absent; `dataclasses.MISSING` where it must not be."""
    field = next(field for field in fields(kind) if field.name == name)
    return field.default_factory() if field.default_factory is not MISSING else field.default


@cache
def _on_the_wire(kind: Any) -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(kind) if "local" not in field.metadata)


def plain(value: Any) -> Any:
    """`value` as what `json.dumps` takes; audio becomes base64."""
    if is_dataclass(value):
        kind = type(value)
        found: dict[str, Any] = dict(tags_of(kind))
        for field in _on_the_wire(kind):
            entry = getattr(value, field.name)
            if entry is not None or "optional" not in field.metadata:
                found[field.name] = plain(entry)
        return found
    if isinstance(value, tuple):
        return [plain(entry) for entry in cast("tuple[Any, ...]", value)]
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    return value


def expected(hint: Any) -> str:
    """Say in words what a value of type `hint` looks like in JSON."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _expected_annotated(*arguments)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(expected(member) for member in arguments))
    if origin is Literal:
        return " or ".join(shown(choice) for choice in arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"a list, each entry {expected(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(expected(entry) for entry in arguments)}]"
    names: dict[Any, str] = {
        str: "text",
        int: "an integer",
        float: "a number",
        bool: "true or false",
        bytes: "audio in base64",
        NoneType: "null",
    }
    return names.get(hint, "an object")


def _expected_annotated(base: Any, *marks: object) -> str:
    text = expected(base)
    for mark in marks:
        if isinstance(mark, Range) and mark.low == mark.high:
            text = f"{mark.low:g}"
        elif isinstance(mark, Range):
            top = f" to {mark.high:g}" if mark.high < math.inf else ""
            text += f" from {mark.low:g}{top}"
        elif isinstance(mark, Most):
            text += f" of at most {mark.count} {unit(base)}"
    return text


def unit(hint: Any) -> str:
    """What is counted in a value of type `hint`."""
    return "characters" if hint is str else "entries"
