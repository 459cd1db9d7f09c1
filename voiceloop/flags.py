"""The command line: which command, its own arguments, and the settings that it runs with.

tyro takes the command line apart. What is given is then read as a file's values are, so every
mistake is told in the same words: flags that name a setting (`--asr.model base.en`) are one more
layer of the configuration. This module does not know what the commands do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import make_dataclass
from itertools import chain, takewhile
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

import tyro
from msgspec import NODEFAULT, Meta, Struct, field, to_builtins
from tyro.conf import HelptextFromCommentsOff, Positional, Suppress, UseAppendAction

from voiceloop.config import KEYS, MEANT, Config, config_files, converted, leaves, load_config
from voiceloop.errors import ConfigError
from voiceloop.schema import Object, Texts, default_of, hints_of, is_struct, members, nearest

PROGRAM = "voiceloop"
HELP, HELP_ALL = ("-h", "--help"), "--help-all"
ABSENT = "\0"
"""What tyro gives for what is not given: no command line can hold it."""
_SETTINGS = {*KEYS, "config"}
"""Options of every command; each takes a value."""


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

    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file of settings, which wins over the user's file and ./voiceloop.toml."""
    settings: Annotated[Config, tyro.conf.arg(name="")] = Config()
    """All settings, merged."""
    origins: Suppress[Mapping[str, str]] = field(default_factory=dict[str, str])
    """Where each setting comes from, by dotted key."""
    refused: Suppress[tuple[str, ...]] = ()
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
    def options(self) -> list[str]:
        """The options that give it a value, without their dashes; none where it is positional."""
        name = self.field.rstrip("_").replace("_", "-")  # a keyword is a field with a dash below
        flag = bool in members(self.hint)
        return [] if self.positional else [name, f"no-{name}"] if flag else [name]

    @property
    def usage(self) -> str:
        """How it is written."""
        if self.positional:
            return self.metavar
        flag = bool in members(self.hint)
        return f"--{self.options[0]}" if flag else f"--{self.options[0]} {self.metavar}"


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
            noted = get_args(hint)[1:]
            usual = name.upper() if Positional in noted else metavar(hint).removesuffix("|none")
            written = next((mark.metavar for mark in noted if hasattr(mark, "metavar")), usual)
            required = default_of(kind, name) is NODEFAULT
            found.append(Argument(name, hint, written, Positional in noted, required))
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
    given, more = _taken(name, kind, rest)
    refused: tuple[str, ...] = ()
    try:
        file, settings, origins = _settings(given, files)
    except ConfigError as error:
        if not kind.looks_at_files:
            raise
        refused = error.message, error.hint
        file, settings, origins = _settings(given, [])
    own = _own(name, kind, given, more)
    return kind(**own, config=file, settings=settings, origins=origins, refused=refused)


def _named(commands: Mapping[str, type[Command]], options: Sequence[str]) -> list[int]:
    """Where among `options` the words stand that name a command: none, one or two."""
    values = {place + 1 for place, option in enumerate(options) if _key(option) in _SETTINGS}
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


def _name(option: str) -> str:
    """An option's name, as help writes it."""
    return option.removeprefix("--").replace("_", "-")


def _members(commands: Mapping[str, type[C]], name: str) -> dict[str, type[C]]:
    """The commands of two words whose first is `name`."""
    return {own: kind for own, kind in commands.items() if own.startswith(f"{name} ")}


def _texts(kind: Any, asked: Container[str], section: str = "") -> Any:
    """The class by which tyro reads a `kind`: of texts, which are ABSENT where none is given.

    Of the settings it has only those that are `asked` for: tyro takes its time for each.
    """
    fields: list[Any] = []
    for name, hint in hints_of(kind).items():
        noted = [mark for mark in get_args(hint)[1:] if not isinstance(mark, Meta)]
        base = members(hint)[0]
        taken, default = (str, ABSENT)
        if is_struct(base):
            taken = _texts(base, asked, "" if base is Config else f"{name}.")
            default = taken()
        elif not issubclass(kind, Command) and section + name not in asked:
            continue
        elif base is bool:
            taken, default = bool, default_of(kind, name)
        elif hint is Texts:
            taken, default = UseAppendAction[tuple[str, ...]], ()
        elif get_origin(base) is tuple:  # all at once, or again
            every = tuple[str, ...]
            taken = every if Positional in noted else UseAppendAction[tuple[every, ...]]
            default = ()
        fields.append((name, Annotated[(taken, *noted)] if noted else taken, default))
    # Of such a module tyro does not look for docstrings.
    return make_dataclass(kind.__name__, fields, frozen=True, namespace={"__module__": "builtins"})


def _taken(name: str, kind: type[Command], argv: Sequence[str]) -> tuple[Any, list[str]]:
    """What tyro finds in `argv` for a command, and the arguments that are too many."""
    by_option = {option: argument for argument in arguments(kind) for option in argument.options}
    for word in takewhile(lambda argument: argument != "--", argv):
        flag, equals, value = word.partition("=")
        argument = by_option.get(_name(flag))
        if equals and argument and bool in members(argument.hint):
            raise ConfigError(f"{flag} takes no value", f"leave out '={value}'")
    try:
        asked = {_key(word.partition("=")[0]) for word in argv}
        given, unknown = tyro.cli(
            _texts(kind, asked),
            args=argv,
            config=(HelptextFromCommentsOff,),
            console_outputs=False,
            return_unknown_args=True,
        )
    except SystemExit as ended:
        if ended.code != 2:
            raise
        # Where everything is a text, a value that is not there is all that tyro can refuse.
        after = zip(argv, [*argv[1:], "--"], strict=True)
        bare = [word for word, value in after if word.startswith("--") and value.startswith("-")]
        known = [word for word in bare if _key(word) in _SETTINGS or _name(word) in by_option]
        flag = next(iter(known), argv[-1])
        raise ConfigError(f"{flag} needs a value", f"write it as: {flag}=VALUE") from None
    for word in unknown:
        if word.startswith("-") and word != "-":
            raise _no_option(word.partition("=")[0], by_option, _lists(name))
    return given, unknown


def _settings(
    given: Any, files: Sequence[Path] | None
) -> tuple[Path | None, Config, dict[str, str]]:
    """The named file, the settings with what flags and files make of them, and their origins."""
    file = None if given.config == ABSENT else Path(given.config)
    flags = {
        key: [*text] if isinstance(text, tuple) else text
        for key, text in leaves(to_builtins(given.settings))
        if text not in (ABSENT, ())
    }
    found = config_files(file) if files is None else [*files, *([file] if file else [])]
    return file, *load_config(found, flags)


def _merged(
    kind: type[Command] | None, argv: Sequence[str], files: Sequence[Path] | None
) -> Config:
    """The settings that help shows."""
    try:
        words = [word for word in argv if word not in (*HELP, HELP_ALL)]
        given, _ = _taken("", kind or Command, words)
        return _settings(given, files)[1]
    except ConfigError:
        return Config()


def _own(name: str, kind: type[Command], given: Any, more: Sequence[str]) -> dict[str, Any]:
    """The values of a command's own arguments, by field."""
    values: dict[str, Any] = {}
    for argument in arguments(kind):
        value = getattr(given, argument.field)
        where = argument.metavar if argument.positional else f"--{argument.options[0]}"
        if isinstance(value, tuple) and not argument.positional:
            if () in value:
                raise ConfigError(f"{where} needs a value", f"write it as: {where}=VALUE")
            value = tuple(chain.from_iterable(value))
        if isinstance(value, bool):
            values[argument.field] = value
        elif value not in (ABSENT, ()):
            texts = list(value) if isinstance(value, tuple) else value
            found = converted(argument.hint, texts, where, text=True, hint=_lists(name))
            values[argument.field] = found
    required = [argument for argument in arguments(kind) if argument.required]
    usage = f"write it as: {' '.join([PROGRAM, name, *(item.usage for item in required)])}"
    if missing := [argument.usage for argument in required if argument.field not in values]:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", usage)
    if more:
        raise ConfigError(f"{name} was given one argument too many: '{more[0]}'", usage)
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
        if _key(flag) not in _SETTINGS and _name(flag) not in known:
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
