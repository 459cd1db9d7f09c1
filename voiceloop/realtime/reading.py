"""From JSON to the values of the wire: every value is checked, and a wrong one is named.

The parameter at fault is named in the API's manner, `session.audio.input.turn_detection.threshold`,
`item.content[0].text`. Keys that nobody knows are refused: a setting that is misspelt and ignored
costs more than one error. This module knows the types of `schema.py` and no event.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from voiceloop.config import Range, nearest
from voiceloop.errors import Code, ProtocolError
from voiceloop.realtime.jsontext import shown
from voiceloop.realtime.schema import (
    Instead,
    Most,
    Patch,
    default_of,
    expected,
    hints_of,
    is_told,
    kind_of,
    tags_of,
    unit,
)

_MANUAL = "docs/protocol.md lists what each event takes"
_LONGEST_NAME = 64
"""No key and no choice is longer, and a longer text is not compared with them."""


def read(hint: Any, value: object, where: str) -> Any:
    """`value`, from JSON, as type `hint`; `where` names it in errors.

    Raises ProtocolError where it does not fit.
    """
    origin = get_origin(hint)
    if origin is Annotated:
        return _read_annotated(hint, value, where)
    if origin in (Union, UnionType):
        return _read_union(hint, value, where)
    if origin is Literal:
        alike = [choice for choice in get_args(hint) if type(choice) is type(value)]
        if value in alike:
            return value
        raise _mismatch(hint, value, where, "invalid_value" if alike else "invalid_type")
    entries = _entries(value)
    if (origin is Patch or is_dataclass(hint)) and entries is not None:
        return _read_object(hint, entries, where)
    if origin is tuple and isinstance(value, list):
        return _read_list(hint, cast("list[object]", value), where)
    if origin is Mapping and entries is not None:
        keys, values = get_args(hint)
        pairs = entries.items()
        return {read(keys, k, where): read(values, v, _join(where, k)) for k, v in pairs}
    if hint is bytes and isinstance(value, str):
        return _read_audio(value, where)
    if hint is float and type(value) is int:
        return float(value)
    if hint is object or type(value) is hint:
        return value
    raise _mismatch(hint, value, where)


def whole_samples(data: bytes, where: str) -> bytes:
    """`data`; ProtocolError where it is not whole samples of 16 bits."""
    if len(data) % 2:
        raise ProtocolError(
            f"{where} has {len(data)} byte{'s' * (len(data) != 1)}, which are not whole samples",
            "send PCM16: two bytes for each sample",
            param=where,
        )
    return data


def missing(param: str) -> ProtocolError:
    """The error for a key that has to be there and is not."""
    return ProtocolError(
        f"{param} is missing", _MANUAL, code="missing_required_parameter", param=param
    )


def _mismatch(hint: Any, value: object, where: str, code: Code = "invalid_type") -> ProtocolError:
    near = _nearest(value, [choice for choice in _choices(hint) if isinstance(choice, str)])
    return ProtocolError(
        f"{where} must be {expected(hint)}, not {shown(value)}",
        f"did you mean '{near}'?" if near else _MANUAL,
        code=code,
        param=where,
    )


def _nearest(value: object, choices: list[str]) -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME:
        return None
    return nearest(value, choices)


def _choices(hint: Any) -> list[object]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for member in get_args(hint) for choice in _choices(member)]


def _read_annotated(hint: Any, value: object, where: str) -> Any:
    base, *marks = get_args(hint)
    try:
        found = read(base, value, where)
        for mark in marks:
            if isinstance(mark, Range) and not mark.low <= found <= mark.high:
                raise _mismatch(hint, value, where, "invalid_value")
    except ProtocolError as error:
        if error.param != where:
            raise  # an entry is at fault, and has been named
        error = _mismatch(hint, value, where, error.code)
        error.hint = next((m.hint for m in marks if isinstance(m, Instead)), error.hint)
        raise error from None
    for mark in marks:
        if isinstance(mark, Most) and len(found) > mark.count:
            size = f"{len(found)} {unit(base)}"
            raise ProtocolError(f"{where} has {size}, and {mark.count} are the most", param=where)
    return found


def _entries(value: object) -> dict[str, object] | None:
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _read_list(hint: Any, value: list[object], where: str) -> tuple[Any, ...]:
    hints = get_args(hint)
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    elif len(value) != len(hints):
        raise _mismatch(hint, value, where, "invalid_value")
    pairs = enumerate(zip(hints, value, strict=True))
    return tuple(read(one, entry, f"{where}[{i}]") for i, (one, entry) in pairs)


def _read_audio(value: str, where: str) -> bytes:
    try:
        data = binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        data = None
    if data is None or not _encodes(data[(len(data) - 1) // 3 * 3 :], value[-4:]):
        raise ProtocolError(
            f"{where} is not base64", "use the standard alphabet, with padding", param=where
        )
    return whole_samples(data, where)


def _encodes(data: bytes, text: str) -> bool:
    """Whether an encoder makes `text` of `data`; damage can hit bits that stand for no byte."""
    return binascii.b2a_base64(data, newline=False) == text.encode()


# Unions and objects -------------------------------------------------------------------------------


def _read_union(hint: Any, value: object, where: str) -> Any:
    members = get_args(hint)
    if value is None and NoneType in members:
        return value
    objects = [one for one in members if get_origin(one) is Patch or is_dataclass(one)]
    entries = _entries(value)
    if entries is not None and objects:
        return _read_object(_tagged(objects, entries, where), entries, where)
    errors: list[ProtocolError] = []
    for member in members:
        if member is not NoneType and member not in objects:
            try:
                return read(member, value, where)
            except ProtocolError as error:
                if error.param != where:
                    raise  # an entry is at fault, and has been named
                errors.append(error)
    # A value of the right type that lies out of bounds is no wrong type.
    bounds = any(error.code == "invalid_value" for error in errors)
    raise _mismatch(hint, value, where, "invalid_value" if bounds else "invalid_type")


def _tagged(objects: list[Any], value: dict[str, object], where: str) -> Any:
    """The member of a union whose tags `value` has: one tag after the other, until one is left."""
    tags = list(dict.fromkeys(tag for one in objects for tag in tags_of(kind_of(one))))
    for tag in tags:
        if any(tag in tags_of(kind_of(one)) for one in objects):
            objects = _having(tag, objects, value, where)
    return objects[0]


def _having(tag: str, objects: list[Any], value: dict[str, object], where: str) -> list[Any]:
    """Those of `objects` whose tag is that of `value`."""
    found = [one for one in objects if tags_of(kind_of(one)).get(tag) == value.get(tag, MISSING)]
    if not found:
        raise _wrong_tag(tag, objects, value, where)
    return found


def _wrong_tag(tag: str, objects: list[Any], value: dict[str, object], where: str) -> ProtocolError:
    """The error for a tag that none of `objects` has, or that is not there."""
    param = _join(where, tag)
    if tag not in value:
        return missing(param)
    known = [tags_of(kind_of(one)) for one in objects]
    choices = tuple(dict.fromkeys(tags[tag] for tags in known if tag in tags))
    code: Code = "invalid_value" if isinstance(value[tag], str) else "invalid_type"
    return _mismatch(Literal[choices], value[tag], param, code)


def _read_object(hint: Any, entries: dict[str, object], where: str) -> Any:
    kind, partial = kind_of(hint), get_origin(hint) is Patch
    tags, hints = tags_of(kind), hints_of(kind)
    for tag, constant in tags.items():
        if entries.get(tag) != constant:
            raise _wrong_tag(tag, [kind], entries, where)
    found: dict[str, Any] = {}
    for key, entry in entries.items():
        if key not in hints and key not in tags:
            raise _unknown(kind, key, where)
        if key in hints and not is_told(kind, key):
            part = _partial(hints[key]) if partial else hints[key]
            found[key] = read(part, entry, _join(where, key))
    if partial:
        return Patch(kind, found)
    for name in hints:
        if name not in found and default_of(kind, name) is MISSING:
            raise missing(_join(where, name))
    return kind(**found)


def _join(where: str, key: str) -> str:
    # The key may be the peer's: errors are one line, whatever it holds.
    name = key if key.isprintable() else json.dumps(key)[1:-1]
    return f"{where}.{name}" if where else name


def _unknown(kind: Any, key: str, where: str) -> ProtocolError:
    name = key if len(key) <= _LONGEST_NAME else f"{key[: _LONGEST_NAME - 3]}..."
    param = _join(where, name)
    instead = getattr(kind, "unsupported", {}).get(key)
    if instead is not None:
        return ProtocolError(
            f"{param} is not supported", instead, code="unsupported_parameter", param=param
        )
    near = _nearest(key, list(hints_of(kind)))
    return ProtocolError(
        f"{param} is not a parameter",
        f"did you mean '{near}'?" if near else _MANUAL,
        code="unknown_parameter",
        param=param,
    )


def _partial(hint: Any) -> Any:
    """`hint` with every object in it that has defaults throughout made a `Patch`."""
    if is_dataclass(hint):
        kind: Any = hint
        whole = any(default_of(kind, name) is MISSING for name in hints_of(kind))
        return kind if whole else Patch[kind]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_partial(member) for member in get_args(hint))]  # noqa: UP007
    return hint
