"""Writes a TOML file of all settings, each with a comment, for the user to edit.

It also completes a file that the user has written.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec
import tomlkit
from msgspec import Struct
from tomlkit.items import AoT, Table

from voiceloop.catalog.pulled import BEST_PULLED
from voiceloop.config import DEFAULT, KEYS, OPTIONS, Config, flatten, of_engine
from voiceloop.manual import meaning
from voiceloop.schema import TOML, expected, hints_of

HEAD = """\
# Settings of voiceloop. A line with # and no space is a default or a value of
# the preset; remove the # to change it.
# voiceloop reads ~/.config/voiceloop/config.toml, and the file of --config FILE.
# `voiceloop config --write` makes or completes it, and keeps what is there.
"""
WIDTH = 78
"""Columns of a comment, without its `# `."""


def settings_file(settings: Config, origins: Mapping[str, str]) -> str:
    """Return the text of the file. A setting that the user has not given is commented out."""
    lines = [HEAD]
    for section, keys in _sections(settings):
        if section:
            lines.append(_heading(section))
        for key in keys:
            given = origins[key] not in (DEFAULT, f"preset {settings.preset}", BEST_PULLED)
            lines.append(_entry(key, settings, given=given))
    return "\n".join(lines)


def completed(text: str, settings: Config) -> str:
    """Add each setting that the TOML file `text` does not mention, as comments with its value in
    `settings`. Tables that are not written under a header of their own are left as they are."""
    text = f"{text}\n" if text and not text.endswith("\n") else text
    document, added = tomlkit.parse(text), list[str]()
    # From the end to the beginning: what is added moves the tables behind it.
    for section, keys in reversed(_sections(settings)):
        table: Any = document
        for name in filter(None, section.split(".")):
            table = table.get(name, {})
        if section and section not in document and "." not in section:
            added[:0] = [_heading(section), *(_entry(key, settings) for key in keys)]
        elif not section or (isinstance(table, Table) and not table.is_super_table()):
            body = document.body if table is document else table.value.body
            noted = "".join(item.as_string() for key, item in body if key is None)
            absent = [
                key
                for key in keys
                if (name := key.rpartition(".")[2]) not in table
                and not re.search(rf"^#\s*{name}\s*=", noted, re.MULTILINE)
            ]
            tables = (at for at, (_, item) in enumerate(body) if isinstance(item, Table | AoT))
            at = next(tables, len(body))
            # Comments at the end belong to the next table, but the head of the file to nothing.
            while at and body[at - 1][0] is None and (section or at < len(body)):
                at -= 1
            comments = "\n".join(["", *(_entry(key, settings) for key in absent), ""])
            body[at:at] = tomlkit.parse(comments).body if absent else []
    return "\n".join([tomlkit.dumps(document), *added]) if added else tomlkit.dumps(document)


def _sections(settings: Config) -> list[tuple[str, list[str]]]:
    """Return each section with its keys; the section without a name is first."""
    found = groupby(flatten(settings), lambda key: key.rpartition(".")[0])
    return [(section, list(keys)) for section, keys in found]


def _heading(section: str) -> str:
    about = "Settings of the engine's own."
    if section not in OPTIONS:
        about = str(hints_of(Config)[section].__doc__).split("\n")[0]
    return f"\n# {about}\n[{section}]\n"


def _entry(key: str, settings: Config, *, given: bool = False) -> str:
    """Return the comment and the line of a setting; the line is a comment unless it is `given`."""
    value, name = flatten(settings)[key], key.rpartition(".")[2]
    if of_engine(key):
        return f"{name} = {tomlkit.item(value).as_string()}\n"
    takes = expected(KEYS[key], TOML)
    text = f"{meaning(key)} Takes {takes}." if takes != "text" else meaning(key)
    lines = [f"# {line}" for line in textwrap.wrap(text, WIDTH)]
    return "\n".join([*lines, f"{'' if given else '#'}{name} = {_written(value)}\n"])


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
