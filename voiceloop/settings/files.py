"""Writes files of settings: all settings with comments, for the user to edit; and single settings
into a file that the user has, whose comments, order and blank lines it keeps."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from shutil import copymode
from typing import Any, cast

import msgspec
import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, InlineTable, Item, Table

from voiceloop.errors import ConfigError
from voiceloop.outputs import part_beside
from voiceloop.settings.config import (
    DEFAULT,
    KEYS,
    OPTIONS,
    Config,
    flatten,
    leaves,
    meaning,
    of_engine,
    toml,
)
from voiceloop.settings.presets import BEST_PULLED
from voiceloop.settings.schema import TOML, expected, hints_of


def keep(
    values: Mapping[str, object], file: Path, complete: Callable[[str], str] = lambda text: text
) -> None:
    """Set `values`, by dotted key (`llm.target`), in `file`: all of them or none. None removes the
    key.

    `complete` may add comments to the text of the file. The old value of a key is noted in a
    comment, if it has one line. Raises ConfigError if `file` is no valid TOML or cannot be written.
    Also raises it if the file is written in a way in which these keys cannot be set without
    changing others.
    """
    target = file.resolve()  # replaces the target of a link, so the link stays a link
    expected = dict(leaves(toml(target))) if target.exists() else {}
    text = target.read_bytes().decode("utf-8") if target.exists() else ""
    try:
        changed = complete(_changed(text, values))
        wanted = {**expected, **values}
        wanted = {key: value for key, value in wanted.items() if value is not None}
        whole = dict(leaves(tomllib.loads(changed))) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError, AttributeError):
        changed, whole = text, False
    if not whole:
        lines = ", ".join(f"{key} = {tomlkit.item(one).as_string()}" for key, one in values.items())
        raise ConfigError(f"nothing can be added to {file} as it is written", f"add {lines}")
    if changed != text:
        _write(changed, target, file)


def _changed(text: str, values: Mapping[str, object]) -> str:
    document = tomlkit.parse(text)
    known = dict(leaves(document.unwrap()))
    for key, value in values.items():
        if known.get(key) == value:  # None for a key that is not there
            continue
        *sections, name = key.split(".", 2)
        table: Any = document
        for section in sections:
            if section not in table:
                table[section] = tomlkit.table()
            table = table[section]
        before = table.get(name)
        if value is None:
            table.remove(name)
            continue
        own = before.trivia.comment.lstrip("# ") if isinstance(before, Item) else ""
        with _above_what_ends(table):
            table[name] = value
        was = "" if before is None else tomlkit.item(before).as_string()
        if was and "\n" not in was and not isinstance(table, InlineTable):
            table[name].comment("; ".join(filter(None, (f"was {was}", own))))
    return tomlkit.dumps(document)


@contextmanager
def _above_what_ends(table: object) -> Generator[None]:
    """Remove the comments at the end of a table while the context lasts.

    These comments belong to the next table, so a new key must stand above them.
    """
    if not isinstance(table, Table):
        yield
        return
    body, count = table.value.body, len(table.value.body)
    while count and body[count - 1][0] is None:
        count -= 1
    ending = body[count:]
    del body[count:]
    try:
        yield
    finally:
        body.extend(ending)


def _write(text: str, target: Path, file: Path) -> None:
    """Replace `target` by a file with `text`. If that fails, `target` is unchanged.

    Raises ConfigError, which names `file`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        opened = part_beside(target)
        part = Path(opened.name)
        try:
            with opened:
                opened.write(text.encode())
            if target.exists():
                copymode(target, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}", "check its permissions"
        ) from error


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
