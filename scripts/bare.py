"""Stands in for packages that a bare machine lacks, as far as what is measured there needs them.

Settings are read from no file and no command line there, no sound is resampled and no file of sound
is opened, and no text has sentences: of msgspec it takes objects with defaults, and of the others
that they can be imported. What else is asked of them fails.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, dataclass_transform

NEVER_CALLED = ("sentencex", "soundfile", "soxr")
"""Imported by what is measured, and not called in it."""


@dataclass_transform(frozen_default=True)
class Struct:
    """An object whose fields have defaults, as `msgspec.Struct` is one."""

    def __init_subclass__(cls, **_options: object) -> None:
        made: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        made.__struct_fields__ = tuple(field.name for field in dataclasses.fields(made))


class Meta:
    """What is noted at a type: nobody reads it here."""

    def __init__(self, **noted: object) -> None:
        vars(self).update(noted)


class ValidationError(Exception):
    """A value that does not fit; nothing is read here, so none is found."""


def complete() -> list[str]:
    """Put stand-ins in the place of what cannot be imported; returns the names of these."""
    lacking = [name for name in ("msgspec", *NEVER_CALLED) if not _there(name)]
    for name in lacking:
        sys.modules[name] = _empty(name)
    if "soundfile" in lacking:
        sound: Any = sys.modules["soundfile"]
        sound.SoundFile = object  # a class of ours is one
    if "msgspec" in lacking:
        structs: Any = _empty("msgspec.structs")
        structs.replace, structs.fields = dataclasses.replace, dataclasses.fields
        known: Any = sys.modules["msgspec"]
        known.Struct, known.Meta, known.ValidationError = Struct, Meta, ValidationError
        known.field = dataclasses.field
        known.NODEFAULT, known.UNSET, known.UnsetType = dataclasses.MISSING, None, type(None)
        known.structs = sys.modules["msgspec.structs"] = structs
    return lacking


def _empty(name: str) -> ModuleType:
    """A module in which there is nothing; others may look for its spec."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    return module


def _there(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
