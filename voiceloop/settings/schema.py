"""Converts values from outside to typed objects, or raises one clear error.

Settings, options and events of the wire are read with this module. A msgspec struct describes an
object: the name of a field is the key, its annotation is the type with its bounds, its default is
the value of an absent key, and its docstring is the meaning. msgspec converts the values. If it
refuses one, this module looks for the innermost part that does not fit its type. The error says
what was expected, what was given, and what was probably meant. Its words are those of a `Wording`.
This module reads neither text nor files.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, ValidationError

from voiceloop.errors import Code

S = TypeVar("S", bound=Struct)
Path = tuple[str | int, ...]
"""The keys of objects and the indices of lists that lead to a value."""

Fraction = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Texts = Annotated[
    tuple[Annotated[str, Meta(min_length=1)], ...], Meta(description="a list of texts, none empty")
]

TOLD = Meta(extra={"told": True})
"""Marks a field that only the server sets. A value that a peer sends for it is ignored."""
LOCAL = Meta(extra={"local": True})
"""Marks a field that is not on the wire."""

REFUSED = (ValidationError, UnicodeEncodeError)
"""The errors that msgspec raises for a wrong value; the second is for text with lone surrogates."""
LONGEST_NAME = 64
"""Maximum length of a text that is compared with keys and choices. No key or choice is longer."""
MOST_NAMED = 12
"""Maximum number of names that a hint lists if none is similar to the wrong name."""


def instead(hint: str) -> Meta:
    """Return a mark for a type. Errors for a value that is not supported give this `hint`."""
    return Meta(extra={"instead": hint})


class Object(Struct, frozen=True, forbid_unknown_fields=True):
    """An object that may have no unknown keys."""


# Reading ------------------------------------------------------------------------------------------


class Mistake(ValueError):
    """An error in a value: the path to it, the problem, and a hint if there is one."""

    def __init__(
        self, problem: str, hint: str = "", *, code: Code = "invalid_value", path: Path = ()
    ) -> None:
        super().__init__(problem)  # the reader puts the name of the value before it
        self.hint = hint
        self.code: Code = code
        self.path = path


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of error messages about one kind of source, such as JSON or TOML."""

    shown: Callable[[object], str]
    """A function that writes a value on one line."""
    null: str
    """The spelling of None; empty if None cannot be written."""
    table: str
    """The words for an object."""
    tables: str
    """The words for a list of objects."""
    unknown: str
    """The problem of an unknown key."""
    cutoff: float
    """Minimum similarity, from 0 to 1, at which a choice is suggested for a wrong value."""


def shown(value: object, write: Callable[[object], str] = json.dumps) -> str:
    """Write `value` on one line for an error message, cut off after 60 characters."""
    text = write(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def one_line(key: str) -> str:
    """Write a key for an error message; unprintable characters become escapes."""
    return key if key.isprintable() else repr(key)


JSON = Wording(
    shown,
    null="null",
    table="an object",
    tables="a list, each entry an object",
    unknown="is not a parameter",
    cutoff=0.5,
)
TOML = Wording(
    partial(shown, write=repr),
    null="'none'",
    table="a table",
    tables="a list of tables, in double brackets",
    unknown="is no key",
    cutoff=0.7,  # `gpu` does not mean `cpu`
)


def read(kind: Any, value: object, words: Wording, *, text: bool = False) -> Any:
    """Convert `value` to type `kind`. With `text`, numbers may be texts.

    Raises Mistake, in the given `words`, if the value does not fit. A class that msgspec does not
    know is called with the value, and may raise Mistake too.
    """
    try:
        return msgspec.convert(value, kind, strict=not text, dec_hook=_made)
    except REFUSED:
        raise explained(kind, value, words) from None


def tidied(hint: Any, value: Any) -> Any:
    """Return `value` without entries that have no effect when it is read as type `hint`.

    A null has no effect for an optional key whose type has no null: the key counts as absent. Keys
    that the class of an object lists in `tunes` are ignored.
    """
    if isinstance(value, list):
        inner = {step: kind for one in members(hint) for kind, _, step in _entries(one, value)}
        return [tidied(inner.get(at), one) for at, one in enumerate(cast("list[object]", value))]
    entries = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if (kind := _kind_of(hint, entries)) is None or not entries:
        return cast(object, value)
    hints, tunes = hints_of(kind), getattr(kind, "tunes", ())
    return {
        key: tidied(hints.get(key), entry)
        for key, entry in entries.items()
        if key not in tunes and not (entry is None and _is_absent(kind, key))
    }


def _kind_of(hint: Any, entries: Mapping[str, object]) -> Any:
    """Return the struct of an object, chosen by its tag if there are several; None if none fits."""
    kinds = [one for one in members(hint) if is_struct(one)]
    tag = kinds[0].__struct_config__.tag_field if kinds else None
    if tag is None or (len(kinds) == 1 and tag not in entries):
        return kinds[0] if kinds else None
    return next((one for one in kinds if tag_of(one) == entries.get(tag)), None)


def _is_absent(kind: Any, key: str) -> bool:
    """Return whether null under this key has the same effect as no key."""
    hint = hints_of(kind).get(key)
    if hint is None:
        return key != kind.__struct_config__.tag_field
    takes_null = any(one in (NoneType, Any, object) for one in members(hint))
    return not takes_null and default_of(kind, key) is not NODEFAULT


def _made(kind: Any, value: object) -> object:
    return value if kind is object else kind(value)


def _fits(hint: Any, value: object) -> bool:
    try:
        msgspec.convert(value, hint, dec_hook=_made)
    except REFUSED:
        return False
    return True


# Errors -------------------------------------------------------------------------------------------


def explained(hint: Any, value: object, words: Wording, path: Path = ()) -> Mistake:
    """Return the mistake of the innermost part of `value` that does not fit type `hint`.

    `path` leads to `value`.
    """
    whole = any(mark.description for mark in marks(hint))
    for member in () if whole else members(hint):
        if is_struct(member) and isinstance(value, dict):
            return _in_object(hint, cast("dict[str, object]", value), words, path)
        for inner, entry, step in _entries(member, value):
            if not _fits(inner, entry):
                return explained(inner, entry, words, (*path, step))
    return mismatch(hint, value, words, path)


def _entries(hint: Any, value: Any) -> list[tuple[Any, object, str | int]]:
    """Return the type, value and key of each entry if `hint` is a list or a mapping, else none."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Mapping and isinstance(value, dict):
        found = cast("dict[str, object]", value)
        return [(arguments[1], entry, key) for key, entry in found.items()]
    if origin is tuple and isinstance(value, list):
        listed = cast("list[object]", value)
        if arguments[-1] is Ellipsis:
            arguments = arguments[:1] * len(listed)
        if len(arguments) == len(listed):
            return [(one, listed[i], i) for i, one in enumerate(arguments)]
    return []


def _in_object(hint: Any, entries: dict[str, object], words: Wording, path: Path) -> Mistake:
    kinds = [one for one in members(hint) if is_struct(one)]
    kind = kinds[0]
    tag = cast("str | None", kind.__struct_config__.tag_field)
    if tag and tag not in entries and len(kinds) > 1:
        return missing((*path, tag))
    if tag and tag in entries:
        choices = {tag_of(one): one for one in kinds}
        kind = next((one for name, one in choices.items() if name == entries[tag]), None)
        if kind is None:
            return mismatch(Literal[tuple(choices)], entries[tag], words, (*path, tag))
    hints = hints_of(kind)
    for key, entry in entries.items():
        if key in hints and not _fits(hints[key], entry):
            return explained(hints[key], entry, words, (*path, key))
        if key not in hints and key != tag:
            return _unknown(kind, key, words, path)
    needed = (name for name in hints if default_of(kind, name) is NODEFAULT)
    return missing((*path, next(name for name in needed if name not in entries)))


def mismatch(hint: Any, value: object, words: Wording, path: Path = ()) -> Mistake:
    """Return the mistake for a `value` that does not fit type `hint`, without looking into it."""
    for member in members(hint):
        if isinstance(value, str) and hasattr(member, "described"):
            try:
                member(value)
            except Mistake as mistake:
                mistake.path = path
                return mistake
    alike = any(_alike(member, value) for member in members(hint))
    found = marks(hint)
    for most in [mark.max_length for mark in found if mark.max_length is not None]:
        size = len(cast(str, value)) if alike and isinstance(value, str | list | dict) else 0
        if size > most:
            unit = "characters" if isinstance(value, str) else "entries"
            return Mistake(f"has {size} {unit}, and {most} are the most", path=path)
    choices = [one for member in members(hint) for one in _choices(member)]
    near = nearest(value, choices, cutoff=words.cutoff) if isinstance(value, str) else None
    hints = [str(mark.extra["instead"]) for mark in found if mark.extra and "instead" in mark.extra]
    hints += [f"did you mean '{near}'?"] if near else []
    return Mistake(
        f"must be {expected(hint, words)}, not {words.shown(cast(object, value))}",
        "".join(hints[:1]),
        code="invalid_value" if alike else "invalid_type",
        path=path,
    )


def missing(path: Path) -> Mistake:
    """Return the mistake for a required key that is absent; `path` leads to the key."""
    return Mistake("is missing", code="missing_required_parameter", path=path)


def _unknown(kind: Any, key: str, words: Wording, path: Path) -> Mistake:
    hint = getattr(kind, "unsupported", {}).get(key)
    if hint is not None:
        code: Code = "unsupported_parameter"
        return Mistake("is not supported", hint, code=code, path=(*path, key))
    near = nearest(key, hints_of(kind))
    hint = f"did you mean '{near}'?" if near else ""
    return Mistake(words.unknown, hint, code="unknown_parameter", path=(*path, key))


def _alike(hint: Any, value: object) -> bool:
    """Return whether `value` has the JSON type of `hint`, whether or not it is within bounds."""
    origin = get_origin(hint)
    if origin is Literal:
        return any(type(choice) is type(value) for choice in get_args(hint))
    if origin in (tuple, Mapping) or is_struct(hint):
        return isinstance(value, list if origin is tuple else dict)
    return type(value) in {float: (int, float), object: (type(value),)}.get(hint, (hint,))


def _choices(hint: Any) -> list[str]:
    listed = get_args(hint) if get_origin(hint) is Literal else ()
    return [choice for choice in listed if isinstance(choice, str)]


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """Return the member of `known` that is most similar to `name`; None if none is similar."""
    if len(name) > LONGEST_NAME:
        return None
    meant = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), meant, n=1, cutoff=cutoff)
    return meant[near[0]] if near else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for a `name` that is not `known`: a similar name, or a list of choices."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"did you mean '{near}'?"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"choose one of: {', '.join(names[:MOST_NAMED])}{more}"


def expected(hint: Any, words: Wording) -> str:
    """Describe in words what a value of type `hint` looks like."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(*arguments, words=words)
    if origin in (Union, UnionType):
        said = [expected(member, words) for member in arguments if member is not UnsetType]
        return " or ".join(filter(None, dict.fromkeys(said)))
    if origin is Literal:
        return " or ".join(map(words.shown, arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        every = expected(arguments[0], words)
        objects = all(map(is_struct, members(arguments[0])))
        return words.tables if objects else f"a list, each entry {every}"
    if origin is tuple:
        return f"[{', '.join(expected(entry, words) for entry in arguments)}]"
    names: dict[Any, str] = {
        str: "text",
        int: "an integer",
        float: "a number",
        bool: "true or false",
        bytes: "audio in base64",
        NoneType: words.null,
    }
    return names.get(hint, getattr(hint, "described", words.table))


def _bounded(base: Any, *marked: object, words: Wording) -> str:
    text = expected(base, words)
    for mark in (one for one in marked if isinstance(one, Meta)):
        if mark.description:
            text = mark.description
        elif mark.ge is not None and mark.ge == mark.le:
            text = f"{mark.ge:g}"
        elif mark.ge is not None:
            text += f" from {mark.ge:g}" + (f" to {mark.le:g}" if mark.le is not None else "")
        elif mark.max_length is not None:
            unit = "characters" if base is str else "entries"
            text += f" of at most {mark.max_length} {unit}"
    return text


# Types --------------------------------------------------------------------------------------------


def members(hint: Any) -> list[Any]:
    """Return the members of a union, or the type itself, without `Annotated` and UnsetType."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return members(arguments[0])
    if origin in (Union, UnionType):
        return [one for member in arguments for one in members(member)]
    return [] if hint is UnsetType else [hint]


def marks(hint: Any) -> list[Meta]:
    """Return the marks of a type and of the members of a union."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return [*marks(arguments[0]), *(one for one in arguments[1:] if isinstance(one, Meta))]
    if origin in (Union, UnionType):
        return [mark for member in arguments for mark in marks(member)]
    return []


def is_struct(hint: Any) -> bool:
    """Return whether a type is a struct, so its values are objects."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def tag_of(kind: Any) -> str:
    """Return the tag that distinguishes a struct in a union: for most, the value of `type`."""
    return kind.__struct_config__.tag


@cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """Return the types of the keys that an object may have, by key."""
    hints = get_type_hints(kind, include_extras=True)
    names = cast("tuple[str, ...]", kind.__struct_fields__)
    return {name: hints[name] for name in names if LOCAL not in marks(hints[name])}


@cache
def default_of(kind: Any, name: str) -> object:
    """Return the value of a field whose key is absent; `msgspec.NODEFAULT` if it is required."""
    field = next(one for one in msgspec.structs.fields(kind) if one.name == name)
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


# Changes ------------------------------------------------------------------------------------------


class Settings(Object, frozen=True):
    """An object whose keys can be updated one by one, also in `Settings` nested within it."""

    def updated(self: S, update: S) -> S:
        """Return a copy with the values that `update` gives.

        The class of `update` comes from `changes`; its fields are UNSET for keys that are absent.
        """
        given: dict[str, Any] = {}
        for name, hint in hints_of(type(self)).items():
            value = getattr(update, name)
            if value is UNSET or TOLD in marks(hint):
                continue
            if isinstance(value, Settings):
                kind: Any = type(value).__base__
                own = getattr(self, name)
                value = (own if isinstance(own, kind) else kind()).updated(value)
            given[name] = value
        return msgspec.structs.replace(self, **given)


def is_given(value: object) -> bool:
    """Return whether a field of an update was given. A field whose key is absent has UNSET."""
    return value is not UNSET


@cache
def changes(kind: type[S]) -> type[S]:
    """Return the class of updates of a `kind`, in which every absent key is UNSET."""
    given: list[Any] = []
    for name, hint in hints_of(kind).items():
        changed = Any if TOLD in marks(hint) else _changed(hint)
        given.append((name, Union[changed, UnsetType], UNSET))  # noqa: UP007
    config = kind.__struct_config__
    made = msgspec.defstruct(
        kind.__name__,
        given,
        bases=(kind,),
        kw_only=True,
        frozen=True,
        tag_field=config.tag_field,
        tag=config.tag,
    )
    return cast("type[S]", made)


def _changed(hint: Any) -> Any:
    if is_struct(hint):
        return changes(hint) if issubclass(hint, Settings) else hint
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_changed(member) for member in get_args(hint))]  # noqa: UP007
    return hint


def meanings(kind: type[Object]) -> dict[str, str]:
    """Return the docstrings under the fields of a class and its bases, by field."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if issubclass(one, Object):
            found |= _docstrings(one.__module__).get(one.__name__, {})
    return found


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings under the fields of a module's classes, each on one line.

    They are keyed by class, then by field.
    """
    found: dict[str, dict[str, str]] = {}
    for kind in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(kind, ast.ClassDef):
            found[kind.name] = {
                ast.unparse(item.target): " ".join(str(ast.literal_eval(text.value)).split())
                for item, text in zip(kind.body, kind.body[1:], strict=False)
                if isinstance(item, ast.AnnAssign) and isinstance(text, ast.Expr)
            }
    return found
