"""Settings that are kept in the user's own file, which stays theirs: what they wrote stands, with
comments, order and blank lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copymode
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Item, Table

from voiceloop.config import toml
from voiceloop.errors import ConfigError
from voiceloop.outputs import part_beside


def keep(values: Mapping[str, str], file: Path) -> None:
    """Set texts in `file`, by dotted key (`llm.target`), all of them or none.

    What a key was before is noted behind it, where there is room for that. Raises ConfigError for
    a file that holds no settings, cannot be written, or could not be changed without touching more
    than these keys.
    """
    target = file.resolve()  # a link is followed, so that it stays one
    expected = toml(target) if target.exists() else {}
    text = target.read_bytes().decode("utf-8") if target.exists() else ""
    try:
        changed = _changed(text, values)
        for key, value in values.items():
            section, _, name = key.rpartition(".")
            (expected.setdefault(section, {}) if section else expected)[name] = value
        whole = tomllib.loads(changed) == expected
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError, AttributeError):
        whole = False
    if not whole:
        lines = ", ".join(f'{key} = "{value}"' for key, value in values.items())
        raise ConfigError(f"nothing can be added to {file} as it is written", f"add {lines}")
    if changed != text:
        _write(changed, target, file)


def _changed(text: str, values: Mapping[str, str]) -> str:
    document = tomlkit.parse(text)
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section and section not in document:
            document[section] = tomlkit.table()
        table: Any = document[section] if section else document
        before = table.get(name)
        if before == value:
            continue
        own = before.trivia.comment.lstrip("# ") if isinstance(before, Item) else ""
        with _above_what_ends(table):
            table[name] = value
        was = "" if before is None else tomlkit.item(before).as_string()
        if was and "\n" not in was and not isinstance(table, InlineTable):
            table[name].comment("; ".join(filter(None, (f"was {was}", own))))
    return tomlkit.dumps(document)


@contextmanager
def _above_what_ends(table: object) -> Iterator[None]:
    """Meanwhile the comments at the end of a table, which are about what follows it, are away."""
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
    """Put the whole text in place of the file, or leave that as it is."""
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
