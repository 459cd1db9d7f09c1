"""Writes settings into the user's own file, and keeps its comments, order and blank lines."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copymode
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Item, Table

from voiceloop.config import leaves, toml
from voiceloop.errors import ConfigError
from voiceloop.outputs import part_beside


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
        whole = False
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
def _above_what_ends(table: object) -> Iterator[None]:
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
