"""Files of settings: where they are, what they may set, and how they are written.

All settings are written with comments, for the user to edit. Single settings are written into a
file that the user has, whose comments, order and blank lines stay. ./voiceloop.toml applies to
anyone who starts voiceloop in its folder, so it may not set the keys in `GUARDED`.
"""

from __future__ import annotations

import json
import os
import textwrap
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from shutil import copymode
from typing import Any, cast

import msgspec
import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Item, Table

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

CHOOSING = frozenset(
    {key for key in KEYS if key.endswith(".engine") or key.startswith(("server.", "mcp.", "wake."))}
    | {
        "asr.model",
        "llm.base_url",
        "llm.target",
        "llm.draft",
        "llm.draft_tokenizer",
        "llm.scorer",
        "tts.model",
        "tts.voice",
        "turns.endpoint",
        "turns.interruption",
        "turns.sound",
    }
)
"""The settings that choose code that is loaded, programs that are run, weights and recordings that
are read or fetched, the servers that get conversations and calls of tools, the wake word, and the
limits that protect a server. An engine's own settings may do any of this."""
GUARDED = CHOOSING | {
    "preset",
    "llm.system",
    "llm.skills",
    "llm.best_of",
    "llm.max_new_tokens",
    "llm.max_thought_tokens",
    "turns.max_guesses",
}
"""The settings that ./voiceloop.toml may not set, besides engines' own: those in `CHOOSING`, those
that tell the language model what to do, and those that let one question cost many replies."""
LOCAL = "voiceloop.toml"
"""The file that is read from the current folder."""


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the user's file of settings, which need not exist."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "voiceloop" / "config.toml"


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the folder for what voiceloop keeps for the user, which need not exist."""
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "voiceloop"


def config_files(
    file: Path | None = None, *, environ: Mapping[str, str] = os.environ, folder: Path = Path()
) -> list[Path]:
    """Return the configuration files that apply, the weakest first; `file` is the one of --config.

    Raises ConfigError if the file in `folder` sets a key in `GUARDED` or an engine's own setting.
    If --config names that file, it is trusted and may set everything.
    """
    user = user_file(environ)
    found = [user] if user.is_file() else []
    local = folder / LOCAL
    if local.is_file() and not (file and file.exists() and file.samefile(local)):
        set_there = [key for key, _ in leaves(toml(local))]
        refused = [key for key in set_there if key in GUARDED or of_engine(key)]
        if refused:
            raise ConfigError(
                f"{local} sets {', '.join(refused)}, which a file that is merely found in the "
                "current folder may not",
                f"if you trust it, name it: --config {local}",
            )
        found.append(local)
    return found if file is None else [*found, file]


def keep(values: Mapping[str, object], file: Path) -> None:
    """Set `values`, by dotted key (`llm.target`), in `file`: all of them or none. None removes the
    key.

    The old value of a key is noted in a comment, if it has one line. Raises ConfigError if `file`
    is no valid TOML or cannot be written, or is written in a way in which these keys cannot be set
    without changing others.
    """
    target = file.resolve()  # replaces the target of a link, so the link stays a link
    expected = dict(leaves(toml(target))) if target.exists() else {}
    text = target.read_bytes().decode("utf-8") if target.exists() else ""
    try:
        changed = _changed(text, values)
        wanted = {**expected, **values}
        wanted = {key: value for key, value in wanted.items() if value is not None}
        whole = dict(leaves(tomllib.loads(changed))) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError, AttributeError):
        changed, whole = text, False
    if not whole:
        lines = ", ".join(f"{key} = {tomlkit.item(one).as_string()}" for key, one in values.items())
        raise ConfigError(f"nothing can be added to {file} as it is written", f"add {lines}")
    if changed != text:
        write(changed, file)


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


def write(text: str, file: Path) -> None:
    """Replace `file`, or the target of a link, by a file with `text`. If that fails, it is
    unchanged.

    Raises ConfigError.
    """
    target = file.resolve()
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
# `voiceloop config --write --tts.speed 1.2` sets a value in it.
"""
WIDTH = 78
"""Columns of a comment, without its `# `."""


def settings_file(settings: Config, origins: Mapping[str, str]) -> str:
    """Return the text of the file. A setting that the user has not given is commented out."""
    lines = [HEAD]
    for section, keys in groupby(flatten(settings), lambda key: key.rpartition(".")[0]):
        if section:
            about = "Settings of the engine's own."
            if section not in OPTIONS:
                about = str(hints_of(Config)[section].__doc__).split("\n")[0]
            lines.append(f"\n# {about}\n[{section}]\n")
        for key in keys:
            given = origins[key] not in (DEFAULT, f"preset {settings.preset}", BEST_PULLED)
            lines.append(_entry(key, settings, given=given))
    return "\n".join(lines)


def _entry(key: str, settings: Config, *, given: bool) -> str:
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
