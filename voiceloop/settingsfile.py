"""Writes a TOML file of all settings, each with a comment, for the user to edit."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
import tomlkit
from msgspec import Struct

from voiceloop.config import KEYS, OPTIONS, Config, flatten, of_engine
from voiceloop.manual import meaning
from voiceloop.schema import TOML, expected, hints_of

HEAD = """\
# Settings of voiceloop. A line with # and no space is a default or a value of
# the preset; remove the # to change it.
# To use this file: --config FILE, or as ~/.config/voiceloop/config.toml.
"""
WIDTH = 78
"""Columns of a comment, without its `# `."""


def settings_file(settings: Config, origins: Mapping[str, str]) -> str:
    """Return the text of the file. A setting whose value is the default, or comes from the preset,
    is commented out."""
    lines, section = [HEAD], ""
    for key, value in flatten(settings).items():
        owner, _, name = key.rpartition(".")
        if owner != section:
            section = owner
            about = "Settings of the engine's own."
            if owner not in OPTIONS:
                about = str(hints_of(Config)[owner].__doc__).split("\n")[0]
            lines += [f"\n# {about}", f"[{owner}]\n"]
        if of_engine(key):
            lines.append(f"{name} = {tomlkit.item(value).as_string()}\n")
            continue
        takes = expected(KEYS[key], TOML)
        text = f"{meaning(key)} Takes {takes}." if takes != "text" else meaning(key)
        lines += [f"# {line}" for line in textwrap.wrap(text, WIDTH)]
        given = origins[key] not in ("default", f"preset {settings.preset}")
        lines.append(f"{'' if given else '#'}{name} = {_written(value)}\n")
    return "\n".join(lines)


def _written(value: object) -> str:
    """Write a value as TOML; None becomes the text "none"."""
    if isinstance(value, Struct):
        return _written(msgspec.to_builtins(value))
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        pairs = (f"{_written(name)} = {_written(one)}" for name, one in table.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_written, cast('Sequence[object]', value)))}]"
    if isinstance(value, str | None):
        # TOML's escapes are JSON's; it wants one more character escaped.
        return json.dumps("none" if value is None else value, ensure_ascii=False).replace(
            "\x7f", "\\u007f"
        )
    return repr(value)
