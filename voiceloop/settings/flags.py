"""Parses the command line: which command, its own arguments, and its settings.

Values on the command line are converted as the values of a file are, so mistakes get the same
messages. Flags that name a setting (`--asr.model base.en`) win over the files. This module does not
know what the commands do.
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

from voiceloop.errors import ConfigError
from voiceloop.settings.config import (
    KEYS,
    MEANT,
    Config,
    converted,
    load_config,
    of_engine,
)
from voiceloop.settings.files import config_files
from voiceloop.settings.schema import Object, Texts, default_of, hints_of, marks, members, nearest

PROGRAM = "voiceloop"
HELP, HELP_ALL = ("-h", "--help"), "--help-all"
POSITIONAL = Meta(extra={"positional": True})
"""Marks an argument that is given by its position."""
MEANT_COMMANDS = {"chat": "talk", "run": "talk", "start": "talk", "download": "models pull"}
"""The right command, by a wrong name that users may try."""
_NUMBER = re.compile(r"-\d*\.?\d+")
_SETTINGS = {*KEYS, "config"}
"""Options of every command; each takes a value."""


def written(metavar: str) -> Meta:
    """Return a mark for the type of an argument. Help shows `metavar`, e.g. FILE, for its value."""
    return Meta(extra={"metavar": metavar})


class Command(Object, frozen=True, kw_only=True):
    """The arguments of every command; each command is a subclass with its own arguments."""

    uses: ClassVar[tuple[str, ...]] = ("vad", "asr", "llm", "tts", "turns")
    """The sections of the settings that the command uses."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Command lines that its help shows."""
    docs: ClassVar[str] = "docs/configuration.md"
    """The page with more about the command."""
    looks_at_files: ClassVar[bool] = False
    """True for a command that checks files of settings itself. If the user's file or
    ./voiceloop.toml is wrong, the command runs without both."""

    config: Annotated[Path | None, written("FILE")] = None
    """A TOML file of settings, which wins over the user's file and ./voiceloop.toml."""
    settings: Config = Config()
    """All settings, merged."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each setting comes from, by dotted key."""
    refused: tuple[str, ...] = ()
    """The message and the hint of an error in the files of settings, if the command
    `looks_at_files`; empty without an error."""


C = TypeVar("C", bound=Command)
Commands = dict[str, tuple[type[Command], Callable[[Any], int]]]
"""Commands by name: the class of the arguments, and the function that returns the exit status."""


class Argument(Struct, frozen=True):
    """An argument that belongs to one command, unlike settings."""

    field: str
    hint: Any
    """The type of the argument, with its bounds if it has any."""
    metavar: str
    positional: bool
    required: bool

    @property
    def is_flag(self) -> bool:
        """Return whether the argument is an option without a value."""
        return bool in members(self.hint)

    @property
    def takes_several(self) -> bool:
        """Return whether the argument takes all values up to the next option."""
        return get_origin(members(self.hint)[0]) is tuple

    @property
    def options(self) -> list[str]:
        """Return the options that set the argument, without dashes, e.g. `play` and `no-play`.

        Empty if the argument is positional.
        """
        name = self.field.rstrip("_").replace("_", "-")  # `from_` stands for `--from`
        return [] if self.positional else [name, f"no-{name}"] if self.is_flag else [name]

    @property
    def usage(self) -> str:
        """Return the argument as help writes it, e.g. `--out R.wav`."""
        if self.positional:
            return self.metavar
        return f"--{self.options[0]}" + f" {self.metavar}" * (not self.is_flag)


class Help(Struct, frozen=True):
    """A request for help instead of a command."""

    name: str
    """A command, or the first word of several commands; empty: all commands."""
    whole: bool
    """True for help with all settings."""
    settings: Config
    """All settings, merged; the defaults if a flag or a file is wrong."""


def arguments(kind: type[Command]) -> list[Argument]:
    """Return the arguments of a command's own, in the order of its fields."""
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
    """Return the placeholder for a value of type `hint` in help, such as `N|auto`."""
    names = {str: "TEXT", int: "N", float: "X", bool: "", Path: "PATH", NoneType: "none"}
    listed = {tuple: "TEXT …", Mapping: "TABLE"}
    words: list[str] = []
    for member in members(hint):
        if get_origin(member) is Literal:
            words += get_args(member)
        else:
            words.append(listed.get(get_origin(member)) or names[member])
    return "|".join(dict.fromkeys(words))


# Reading ------------------------------------------------------------------------------------------


def parse(
    commands: Mapping[str, type[C]],
    argv: Sequence[str],
    *,
    files: Sequence[Path] | None = None,
) -> C | Help:
    """Parse `argv` (without the program's name) as one of `commands`, or as a request for help.

    The name of a command may have two words. Nothing at all, and the word `help`, request help.
    `files` replaces the user's file and ./voiceloop.toml.

    Raises ConfigError, with the nearest name, for an unknown command, option or setting. Also
    raises it for a value that does not fit, a missing argument, and an argument too many. With
    `--help` only an unknown command is an error.
    """
    argv = [*argv[1:], HELP[1]] if not argv or argv[0] == "help" else argv
    options = list(takewhile(lambda argument: argument != "--", argv))
    name, rest = named(commands, argv)
    if any(option in (*HELP, HELP_ALL) for option in options):
        if name and name not in commands and not members_of(commands, name):
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


def named(commands: Mapping[str, type[C]], argv: Sequence[str]) -> tuple[str, list[str]]:
    """Split a command line into the name of its command, of one or two words, and the rest.

    The name is empty if there is none, and the first word alone of a name of two words.
    """
    options = list(takewhile(lambda argument: argument != "--", argv))
    values = {place + 1 for place, option in enumerate(options) if _is_setting(_key(option))}
    places = [
        place
        for place, word in enumerate(options)
        if place not in values and not word.startswith("-")
    ]
    places = places[: 2 if places and members_of(commands, options[places[0]]) else 1]
    rest = [word for place, word in enumerate(argv) if place not in places]
    return " ".join(options[place] for place in places), rest


def _key(option: str) -> str:
    """Return the key of the setting that an option such as `--asr.model` names.

    Empty for a word without dashes. A word with a value in it (`--asr.model=X`) gives no known key.
    """
    return option.removeprefix("--").replace("-", "_") if option.startswith("--") else ""


def _is_setting(key: str) -> bool:
    """Return whether `key` is an option of every command: a setting, or `config`."""
    return key in _SETTINGS or of_engine(key)


def _name(option: str) -> str:
    """Return the name of an option as help writes it, without the leading dashes."""
    return option.removeprefix("--").replace("_", "-")


def members_of(commands: Mapping[str, type[C]], name: str) -> dict[str, type[C]]:
    """Return the commands of two words that begin with `name`."""
    return {own: kind for own, kind in commands.items() if own.startswith(f"{name} ")}


class _Given(NamedTuple):
    """The texts that a command line gives."""

    own: dict[str, Any]
    """The values of the command's own options, by field."""
    settings: dict[str, Any]
    """The texts for settings and `config`, by key; a list of texts for a setting that is a list."""
    alone: list[str]
    """The positional arguments."""

    @property
    def file(self) -> Path | None:
        """Return the path that `--config` gives, if any."""
        return Path(self.settings["config"]) if "config" in self.settings else None


def _taken(name: str, kind: type[Command], argv: Sequence[str]) -> _Given:
    """Split the words after a command's name into options, settings and positional arguments."""
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
    """Merge the settings from files and flags. Return them and the origin of each."""
    file = given.file
    flags = {key: value for key, value in given.settings.items() if key != "config"}
    found = config_files(file) if files is None else [*files, *([file] if file else [])]
    return load_config(found, flags)


def _merged(
    kind: type[Command] | None, argv: Sequence[str], files: Sequence[Path] | None
) -> Config:
    """Return the settings that help shows: the defaults if a flag or a file is wrong."""
    try:
        words = [word for word in argv if word not in (*HELP, HELP_ALL)]
        return _settings(_taken("", kind or Command, words), files)[0]
    except ConfigError:
        return Config()


def _own(name: str, kind: type[Command], given: _Given) -> dict[str, Any]:
    """Return the values of a command's own arguments, by field."""
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


# Errors -------------------------------------------------------------------------------------------


def _no_command(
    commands: Mapping[str, type[Command]], name: str, options: Sequence[str]
) -> ConfigError:
    """Return the error for a command line that names no command."""
    if members := members_of(commands, name):
        return ConfigError(f"{name} is several commands", f"choose one of: {', '.join(members)}")
    choices = f"choose one of: {', '.join(commands)}"
    if name:
        known = {*commands, *(one.partition(" ")[0] for one in commands)}
        seconds = [one for one in commands if one.endswith(f" {name}")]
        near = seconds[0] if len(seconds) == 1 else MEANT_COMMANDS.get(name)
        near = near or nearest(name, known, cutoff=0.6)
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
    options, last = {"help", "help-all", "config", *known, *settings}, name.rpartition(".")[2]
    near = MEANT.get(name) or (last if last in options else nearest(name, options))
    return ConfigError(f"there is no option {flag}", f"did you mean --{near}?" if near else lists)


def _lists(name: str) -> str:
    return f"`{PROGRAM} {name} --help` lists what it takes"
