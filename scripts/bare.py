"""Replaces packages that a bare machine lacks by stand-ins with the little that the GPU check uses.

The check reads no settings, resamples no sound, opens no sound file and splits no sentences. So
msgspec need only provide objects with defaults and read the tables of English, and the other
packages need only be importable. Any other use of them fails.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, UnionType
from typing import Any, dataclass_transform, get_args, get_origin, get_type_hints

NEVER_CALLED = ("sentencex", "soundfile", "soxr")
"""Packages that the measured code imports, but never calls."""


@dataclass_transform(frozen_default=True)
class Struct:
    """A stand-in for `msgspec.Struct`: an object whose fields have defaults."""

    def __init_subclass__(cls, kw_only: bool = False, **_options: object) -> None:
        for name, value in [*vars(cls).items()]:
            if isinstance(value, dict) and name in cls.__annotations__:
                setattr(cls, name, dataclasses.field(default_factory=dict))
        made: Any = dataclasses.dataclass(frozen=True, kw_only=kw_only)(cls)
        made.__struct_fields__ = tuple(field.name for field in dataclasses.fields(made))


class Meta:
    """A stand-in for `msgspec.Meta`: annotations of a type, which are not read here."""

    def __init__(self, **noted: object) -> None:
        vars(self).update(noted)


class ValidationError(Exception):
    """A stand-in for `msgspec.ValidationError`, which is never raised here."""


def convert(given: Any, kind: Any, **_options: object) -> Any:
    """Make an object of the type `kind` from the tables, lists and values `given`, which are taken
    to fit. This is a stand-in for `msgspec.convert`."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: convert(value, hints[name]) for name, value in given.items()})
    if hasattr(kind, "_fields"):
        return kind(*given)
    if origin is UnionType:
        return convert(given, parts[0])
    if origin is Mapping:
        return {parts[0](key): convert(value, parts[1]) for key, value in given.items()}
    if origin is tuple and parts[-1] is not ...:
        return tuple(map(convert, given, parts))
    if origin is frozenset:
        return frozenset(given)
    if origin in (tuple, Sequence):
        return tuple(convert(one, parts[0]) for one in given)
    return given


def complete() -> list[str]:
    """Install stand-ins for the packages that cannot be imported. Return their names."""
    lacking = [name for name in ("msgspec", *NEVER_CALLED) if not _there(name)]
    for name in lacking:
        sys.modules[name] = _empty(name)
    if "soundfile" in lacking:
        sound: Any = sys.modules["soundfile"]
        sound.SoundFile = object  # a class of ours inherits from it
    if "msgspec" in lacking:
        structs: Any = _empty("msgspec.structs")
        structs.replace, structs.fields = dataclasses.replace, dataclasses.fields
        structs.asdict = vars
        known: Any = sys.modules["msgspec"]
        known.Struct, known.Meta, known.ValidationError = Struct, Meta, ValidationError
        known.field, known.convert = dataclasses.field, convert
        known.NODEFAULT, known.UNSET, known.UnsetType = dataclasses.MISSING, None, type(None)
        known.structs = sys.modules["msgspec.structs"] = structs
    return lacking


def _empty(name: str) -> ModuleType:
    """Return an empty module, with a spec because other packages may look for that."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    return module


def _there(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
