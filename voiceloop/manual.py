"""Help, as text: what there is to do, what a command takes, and the settings that it runs with.

The help of a command fits on a small terminal: of each option it tells the first sentence, of the
settings those that people change, and how to see all. What is told stands in the docstrings of the
commands and of `voiceloop.config`, which `docs/configuration.md` is written from, too.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import NamedTuple, cast

from voiceloop.config import KEYS, OPTIONS, Config
from voiceloop.flags import PROGRAM, Command, Help, arguments, metavar
from voiceloop.schema import Object, default_of, hints_of, is_struct

LINES = 23
"""Of help at most, on a terminal of 80 columns and 24 lines, the last of which is the prompt's."""
OFTEN = (
    *("preset", "asr.language", "llm.target", "tts.voice", "tts.speed", "asr.model"),
    *("tts.engine", "llm.system", "server.max_sessions"),
)
"""The settings that people change: help shows those that a command uses, the first that fit."""
COLUMN = 28
"""Where meanings begin at the latest, beside what they are the meaning of."""


class ManualEntry(NamedTuple):
    """An option, a word or a command, and what it means."""

    usage: str
    meaning: str
    value: str = ""
    """What it is unless it is given; empty where it is nothing."""


Groups = Mapping[str, Mapping[str, str]]
"""The first words of commands under the titles that they stand under, each with what the commands
do that begin with it; empty where that is a command by itself, which tells it."""


def told(
    asked: Help, commands: Mapping[str, type[Command]], groups: Groups, about: str, width: int
) -> str:
    """The help that is asked for, in lines of `width`; `about` is what the program is."""
    if not asked.name:
        return overview(commands, groups, about, width)
    if asked.name in commands:
        return page(commands[asked.name], asked, width)
    first = f"{asked.name} "
    members = {name: kind for name, kind in commands.items() if name.startswith(first)}
    return family(asked.name, members, groups, width)


def overview(commands: Mapping[str, type[Command]], groups: Groups, about: str, width: int) -> str:
    """The help of the program."""
    told = [
        (
            title,
            [ManualEntry(word, text or purpose(commands[word])) for word, text in words.items()],
        )
        for title, words in groups.items()
    ]
    column = _column(entry for _, entries in told for entry in entries)
    lines = [about, f"usage: {PROGRAM} COMMAND [OPTIONS]", ""]
    for title, entries in told:
        lines += [f"{title}:", *_rows(entries, column, width)]
    more = f"{PROGRAM} COMMAND --help tells more. Also: --version, --print-completion SHELL"
    return "\n".join([*lines, "", more])


def family(name: str, commands: Mapping[str, type[Command]], groups: Groups, width: int) -> str:
    """The help of the word that several commands begin with."""
    about = next(words[name] for words in groups.values() if name in words)
    entries = [ManualEntry(own, purpose(kind)) for own, kind in commands.items()]
    lines = [f"{about}.", f"usage: {PROGRAM} {name} COMMAND [OPTIONS]", ""]
    lines += _rows(entries, _column(entries), width)
    return "\n".join([*lines, "", f"{PROGRAM} {name} COMMAND --help tells more."])


def page(kind: type[Command], asked: Help, width: int) -> str:
    """The help of a command, with the values that the settings have."""
    own = _own(kind)
    usage = " ".join(argument.usage for argument in arguments(kind) if argument.required)
    head = [f"usage: {PROGRAM} {asked.name} {usage}{' ' * bool(usage)}[OPTIONS]", ""]
    examples = ["for example:", *(f"  {example}" for example in kind.examples)]
    if asked.whole:
        about = textwrap.dedent(f"    {kind.__doc__}").strip().splitlines()
        return "\n".join([*about, *head, *_whole(kind, own, asked.settings, width), *examples])
    brief = [ManualEntry(one.usage, beginning(one.meaning), one.value) for one in own]
    often = [
        ManualEntry(one.usage, beginning(one.meaning), one.value)
        for one in (_setting(key, asked.settings) for key in OFTEN if uses(kind, key))
    ]
    column = _column([*brief, *often])
    tail = [*examples, f"More: {PROGRAM} {asked.name} --help-all, {kind.docs}"]
    lines = [f"{purpose(kind)}.", *head, *_rows(brief, column, width), *[""] * bool(brief)]
    shown: list[str] = []
    for rows in (_rows([one], column, width) for one in often):
        if len([*lines, *shown, *rows, "", *tail]) > LINES:
            break
        shown += rows
    return "\n".join([*lines, *shown, *[""] * bool(shown), *tail])


def meanings(kind: type[Object]) -> dict[str, str]:
    """What the fields of a class are said to be, in the docstrings under them."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if issubclass(one, Object):
            found |= _docstrings(one.__module__).get(one.__name__, {})
    return found


def meaning(key: str) -> str:
    """What a setting is said to be, by its dotted key."""
    section, _, name = key.rpartition(".")
    return meanings(hints_of(Config)[section] if section else Config)[name]


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings under the fields of a module's classes, each in one line."""
    found: dict[str, dict[str, str]] = {}
    for kind in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(kind, ast.ClassDef):
            found[kind.name] = {
                ast.unparse(item.target): " ".join(str(ast.literal_eval(text.value)).split())
                for item, text in zip(kind.body, kind.body[1:], strict=False)
                if isinstance(item, ast.AnnAssign) and isinstance(text, ast.Expr)
            }
    return found


def purpose(kind: type[Command]) -> str:
    """What a command does, in one sentence."""
    return (kind.__doc__ or "").split("\n")[0].rstrip(".")


def beginning(meaning: str) -> str:
    """The first sentence, or what stands before a semicolon."""
    return re.split(r"[.;] ", meaning)[0].rstrip(".")


def uses(kind: type[Command], key: str) -> bool:
    """Whether a command runs with a setting."""
    section = key.rpartition(".")[0]
    return section in kind.uses if section else bool(kind.uses)


def _own(kind: type[Command]) -> list[ManualEntry]:
    """What a command takes besides the settings."""
    said = meanings(kind)
    found: list[ManualEntry] = []
    for argument in arguments(kind):
        default = None if argument.required else default_of(kind, argument.field)
        value = "" if default in (None, False) else _value(default)
        found.append(ManualEntry(argument.usage, said[argument.field], value))
    return found


def _setting(key: str, settings: Config) -> ManualEntry:
    usage = f"--{key.replace('_', '-')} {metavar(KEYS[key])}"
    return ManualEntry(usage, meaning(key), _value(attrgetter(key)(settings)))


def _of_engine(section: str, settings: Config) -> Iterable[ManualEntry]:
    """The settings of an engine's own, where it is none that comes with voiceloop."""
    config = getattr(settings, section)
    usual = getattr(Config(), section)
    if f"{section}.options" not in OPTIONS or config.engine == usual.engine:
        return
    from voiceloop.engines import Kind, options_of, registered

    kind = cast(Kind, section)
    own = options_of(kind, config.engine) if config.engine in registered(kind) else None
    if own is None:
        return
    for name, hint in hints_of(own).items():
        usage = f"--{section}.options.{name.replace('_', '-')} {metavar(hint)}"
        value = config.options.get(name, default_of(own, name))
        yield ManualEntry(usage, meanings(own).get(name, ""), _value(value))


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("tuple[object, ...]", value)))
    return "none" if value is None else str(value)


def _whole(
    kind: type[Command], own: Sequence[ManualEntry], settings: Config, width: int
) -> Iterable[str]:
    """All that a command takes, in full."""
    config = ManualEntry("--config FILE", meanings(Command)["config"])
    sections: list[tuple[str, list[ManualEntry]]] = [("", [*own, config])]
    for section, hint in hints_of(Config).items():
        if is_struct(hint) and section in kind.uses:
            about = str(hint.__doc__).split("\n")[0].rstrip(".")
            keys = [key for key in KEYS if key.startswith(f"{section}.")]
            entries = [_setting(key, settings) for key in keys]
            sections.append((f"{section}: {about}", [*entries, *_of_engine(section, settings)]))
    if kind.uses:
        top = [_setting(key, settings) for key in KEYS if "." not in key]
        sections.insert(1, ("settings, and what they are now", top))
    for title, entries in sections:
        if title:
            yield from (title, "")
        for entry in entries:
            value = f"  [{entry.value}]" if entry.value else ""
            yield f"  {entry.usage}{value}"
            yield from (f"      {line}" for line in _wrapped(entry.meaning, width - 6))
        yield ""


def _column(entries: Iterable[ManualEntry]) -> int:
    return min(COLUMN, max((len(entry.usage) + 4 for entry in entries), default=0))


def _rows(entries: Iterable[ManualEntry], column: int, width: int) -> list[str]:
    """Entries in two columns; what is wider than the first has a line of its own."""
    rows: list[str] = []
    for entry in entries:
        meaning = f"{entry.meaning} [{entry.value}]" if entry.value else entry.meaning
        first, *others = _wrapped(meaning, width - column)
        usage = f"  {entry.usage}"
        if len(usage) + 2 > column:
            rows.append(usage)
            usage = ""
        rows += [f"{usage:<{column}}{first}", *(f"{'':<{column}}{line}" for line in others)]
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    """`text` in lines; options and addresses stay whole."""
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
