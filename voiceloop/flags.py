"""The command line: which command, its own arguments, and the settings that it runs with.

It is taken apart into texts, which are then read as a file's values are, so every mistake is told
in the same words: flags that name a setting (`--asr.model base.en`) are one more layer of the
configuration. This module does not know what the commands do.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, field

from voiceloop.config import (
    KEYS,
    MEANT,
    Config,
    config_files,
    converted,
    load_config,
    of_engine,
)
from voiceloop.errors import ConfigError
from voiceloop.schema import Object, Texts, default_of, hints_of, marks, members, nearest

PROGRAM = "voiceloop"
HELP, HELP_ALL = ("-h", "--help"), "--help-all"
POSITIONAL = Meta(extra={"positional": True})
"""Marks an argument that is given by its place."""
_NUMBER = re.compile(r"-\d*\.?\d+")
_SETTINGS = {*KEYS, "config"}
"""Options of every command; each takes a value."""


def written(metavar: str) -> Meta:
    """Marks the type of an argument by how help writes its value."""
    return Meta(extra={"metavar": metavar})


class Command(Object, frozen=True, kw_only=True):
    """What every command takes; each command is a subclass with its own arguments."""

    uses: ClassVar[tuple[str, ...]] = ("vad", "asr", "llm", "tts", "turns")
    """The sections of the settings that it runs with."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Command lines that its help shows."""
    docs: ClassVar[str] = "docs/configuration.md"
    """Where more is told."""
    looks_at_files: ClassVar[bool] = False
    """It looks into files of settings itself, so it runs where they are wrong, without them."""

    config: Annotated[Path | None, written("FILE")] = None
    """A TOML file of settings, which wins over the user's file and ./voiceloop.toml."""
    settings: Config = Config()
    """All settings, merged."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each setting comes from, by dotted key."""
    refused: tuple[str, ...] = ()
    """What is wrong with the files of settings, and what to do about it, where it runs without."""


C = TypeVar("C", bound=Command)
Commands = dict[str, tuple[type[Command], Callable[[Any], int]]]
"""What there is to do, by name: what it takes, and what runs it, which returns the exit status."""


class Argument(Struct, frozen=True):
    """An argument that not every command takes."""

    field: str
    hint: Any
    """Its type, with its bounds if it has any."""
    metavar: str
    positional: bool
    required: bool

    @property
    def is_flag(self) -> bool:
        """It takes no value."""
        return bool in members(self.hint)

    @property
    def takes_several(self) -> bool:
        """It takes values until the next option."""
        return get_origin(members(self.hint)[0]) is tuple

    @property
    def options(self) -> list[str]:
        """The options that give it a value, without their dashes; none where it is positional."""
        name = self.field.rstrip("_").replace("_", "-")  # a keyword is a field with a dash below
        return [] if self.positional else [name, f"no-{name}"] if self.is_flag else [name]

    @property
    def usage(self) -> str:
        """How it is written."""
        if self.positional:
            return self.metavar
        return f"--{self.options[0]}" + f" {self.metavar}" * (not self.is_flag)


class Help(Struct, frozen=True):
    """What is asked for instead of a command: to be told of it."""

    name: str
    """A command's, or the first word of several; empty: what there is to do."""
    whole: bool
    """With all settings."""
    settings: Config
    """All settings, merged; the defaults where something is wrong with them."""


def arguments(kind: type[Command]) -> list[Argument]:
    """A command's arguments besides those that every command takes."""
    found: list[Argument] = []
    for name, hint in hints_of(kind).items():
        if name not in Command.__struct_fields__:
            noted: dict[str, Any] = {}
            for mark in marks(hint):
                noted |= mark.extra or {}
            positional = "positional" in noted
            usual = name.upper() if positional else metavar(hint).removesuffix("|none")
            required = default_of(kind, name) is NODEFAULT
            shown = noted.get("metavar", usual)
            found.append(Argument(name, hint, shown, positional, required))
    return found


def metavar(hint: Any) -> str:
    """How a value of type `hint` is written where any would do, such as `N|auto`."""
    names = {str: "TEXT", int: "N", float: "X", bool: "", Path: "PATH", NoneType: "none"}
    words: list[str] = []
    for member in members(hint):
        if get_origin(member) is Literal:
            words += get_args(member)
        else:
            words.append("TEXT …" if get_origin(member) is tuple else names[member])
    return "|".join(dict.fromkeys(words))


# Reading ------------------------------------------------------------------------------------------


def parse(
    commands: Mapping[str, type[C]],
    argv: Sequence[str],
    *,
    files: Sequence[Path] | None = None,
) -> C | Help:
    """Read `argv` (without the program's name) as one of `commands`, by name.

    A name may be of two words; then the second may be written as an option: `bench --compare` is
    `bench compare`. `files` replaces the user's file and ./voiceloop.toml. Raises ConfigError for
    an unknown command, option or setting, naming the nearest one, for a value that does not fit,
    and for an argument that is missing or one too many. Help is given whatever else is wrong.
    """
    options = list(takewhile(lambda argument: argument != "--", argv))
    named = _named(commands, options)
    name = " ".join(options[place].removeprefix("--") for place in named)
    rest = [word for place, word in enumerate(argv) if place not in named]
    if any(option in (*HELP, HELP_ALL) for option in options):
        if name and name not in commands and not _members(commands, name):
            raise _no_command(commands, name, ())
        return Help(name, HELP_ALL in options, _merged(commands.get(name), rest, files))
    if name not in commands:
        raise _no_command(commands, name, options)
    kind = commands[name]
    given = _taken(name, kind, rest)
    refused: tuple[str, ...] = ()
    try:
        settings, origins = _settings(given, files)
    except ConfigError as error:
        if not kind.looks_at_files:
            raise
        refused = error.message, error.hint
        settings, origins = _settings(given, [])
    own = _own(name, kind, given)
    return kind(**own, config=given.file, settings=settings, origins=origins, refused=refused)


def _named(commands: Mapping[str, type[Command]], options: Sequence[str]) -> list[int]:
    """Where among `options` the words stand that name a command: none, one or two."""
    values = {place + 1 for place, option in enumerate(options) if _is_setting(_key(option))}
    places = [
        place
        for place, word in enumerate(options)
        if place not in values and not word.startswith("-")
    ]
    if not places or not (members := _members(commands, options[places[0]])):
        return places[:1]
    seconds = {own.partition(" ")[2] for own in members}
    after = range(places[0] + 1, len(options))
    known = [place for place in after if options[place].removeprefix("--") in seconds]
    return places[:1] + (known or places[1:])[:1]


def _key(option: str) -> str:
    """The setting that an option names; empty where it is none, or has its value within it."""
    return option.removeprefix("--").replace("-", "_") if option.startswith("--") else ""


def _is_setting(key: str) -> bool:
    """Whether an option of every command has this key; each takes a value."""
    return key in _SETTINGS or of_engine(key)


def _name(option: str) -> str:
    """An option's name, as help writes it."""
    return option.removeprefix("--").replace("_", "-")


def _members(commands: Mapping[str, type[C]], name: str) -> dict[str, type[C]]:
    """The commands of two words whose first is `name`."""
    return {own: kind for own, kind in commands.items() if own.startswith(f"{name} ")}


class _Given(NamedTuple):
    """What a command line gives, as texts."""

    own: dict[str, Any]
    """The values of the command's own options, by field."""
    settings: dict[str, Any]
    """The values of settings, by dotted key; a list where the setting is one."""
    alone: list[str]
    """What stands by itself."""

    @property
    def file(self) -> Path | None:
        """The file of settings that is named."""
        return Path(self.settings["config"]) if "config" in self.settings else None


def _taken(name: str, kind: type[Command], argv: Sequence[str]) -> _Given:
    """Take apart the words that are given to a command."""
    by_option = {option: argument for argument in arguments(kind) for option in argument.options}
    options = list(takewhile(lambda word: word != "--", argv))
    given, words = _Given({}, {}, []), deque(options)
    while words:
        word = words.popleft()
        if not _is_option(word):
            given.alone.append(word)
            continue
        flag, equals, value = word.partition("=")
        key, argument = _key(flag), by_option.get(_name(flag))
        if argument is None and not _is_setting(key):
            raise _no_option(flag, by_option, _lists(name))
        if argument and argument.is_flag:
            if equals:
                raise ConfigError(f"{flag} takes no value", f"leave out '={value}'")
            given.own[argument.field] = _name(flag) == argument.options[0]
            continue
        values, several = [value] * bool(equals), argument is not None and argument.takes_several
        while not equals and words and not _is_option(words[0]) and (several or not values):
            values.append(words.popleft())
        if not values:
            raise ConfigError(f"{flag} needs a value", f"write it as: {flag}=VALUE")
        found, at = (given.own, argument.field) if argument else (given.settings, key)
        listed = several or KEYS.get(key) is Texts
        found[at] = [*found.get(at, []), *values] if listed else values[0]
    given.alone.extend(argv[len(options) + 1 :])
    return given


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _NUMBER.fullmatch(word)


def _settings(given: _Given, files: Sequence[Path] | None) -> tuple[Config, dict[str, str]]:
    """The settings with what flags and files make of them, and their origins."""
    file = given.file
    flags = {key: value for key, value in given.settings.items() if key != "config"}
    found = config_files(file) if files is None else [*files, *([file] if file else [])]
    return load_config(found, flags)


def _merged(
    kind: type[Command] | None, argv: Sequence[str], files: Sequence[Path] | None
) -> Config:
    """The settings that help shows."""
    try:
        words = [word for word in argv if word not in (*HELP, HELP_ALL)]
        return _settings(_taken("", kind or Command, words), files)[0]
    except ConfigError:
        return Config()


def _own(name: str, kind: type[Command], given: _Given) -> dict[str, Any]:
    """The values of a command's own arguments, by field."""
    values: dict[str, Any] = {}
    alone = given.alone
    for argument in arguments(kind):
        where = argument.metavar if argument.positional else f"--{argument.options[0]}"
        if not argument.positional:
            texts = given.own.get(argument.field)
        elif argument.takes_several:
            texts, alone = alone or None, []
        else:
            texts, alone = (alone[0] if alone else None), alone[1:]
        if isinstance(texts, bool):
            values[argument.field] = texts
        elif texts is not None:
            found = converted(argument.hint, texts, where, text=True, hint=_lists(name))
            values[argument.field] = found
    required = [argument for argument in arguments(kind) if argument.required]
    usage = f"write it as: {' '.join([PROGRAM, name, *(item.usage for item in required)])}"
    if missing := [argument.usage for argument in required if argument.field not in values]:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", usage)
    if alone:
        raise ConfigError(f"{name} was given one argument too many: '{alone[0]}'", usage)
    return values


# What is wrong ------------------------------------------------------------------------------------


def _no_command(
    commands: Mapping[str, type[Command]], name: str, options: Sequence[str]
) -> ConfigError:
    """What is wrong with words of which none is a command."""
    if members := _members(commands, name):
        return ConfigError(f"{name} is several commands", f"choose one of: {', '.join(members)}")
    choices = f"choose one of: {', '.join(commands)}"
    if name:
        near = nearest(name, {*commands, *(one.partition(" ")[0] for one in commands)}, cutoff=0.6)
        hint = f"did you mean '{near}'?" if near else choices
        return ConfigError(f"there is no command '{name}'", hint)
    known = [o for kind in commands.values() for own in arguments(kind) for o in own.options]
    for flag in (option.partition("=")[0] for option in options if option.startswith("-")):
        if not _is_setting(_key(flag)) and _name(flag) not in known:
            known += ["version", "print-completion"]
            return _no_option(flag, known, f"`{PROGRAM} --help` lists the commands")
    return ConfigError("no command was given", choices)


def _no_option(flag: str, known: Iterable[str], lists: str) -> ConfigError:
    name = flag.lstrip("-").replace("_", "-")
    settings = (key.replace("_", "-") for key in KEYS)
    near = MEANT.get(name) or nearest(name, {"help", "help-all", "config", *known, *settings})
    return ConfigError(f"there is no option {flag}", f"did you mean --{near}?" if near else lists)


def _lists(name: str) -> str:
    return f"`{PROGRAM} {name} --help` lists what it takes"
