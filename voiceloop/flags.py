"""The command line: which command, its own arguments, and the settings that it runs with.

Flags that name a setting (`--asr.model base.en`) are one more layer of the configuration, checked
like a file's, and a command's own arguments are checked in the same words. tyro prints the help,
with the merged settings as defaults. This module does not know what the commands do.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from msgspec import Meta

from voiceloop.config import KEYS, MEANT, Config, config_files, converted, load_config
from voiceloop.errors import ConfigError
from voiceloop.schema import Texts, nearest

PROGRAM = "voiceloop"
HELP = ("-h", "--help")


@dataclass(frozen=True, kw_only=True)
class Command:
    """What every command takes; each command is a subclass with its own arguments."""

    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file of settings, which wins over the user's file and ./voiceloop.toml."""
    settings: Annotated[Config, tyro.conf.arg(name="")] = field(default_factory=Config)
    """All settings, merged."""
    origins: tyro.conf.Suppress[Mapping[str, str]] = field(default_factory=dict[str, str])
    """Where each setting comes from, by dotted key."""


C = TypeVar("C", bound=Command)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that not every command takes."""

    field: str
    kind: Any
    """Its type, with its bounds if it has any; a tuple where it takes several values."""
    metavar: str
    positional: bool
    required: bool

    @property
    def options(self) -> list[str]:
        """The options that give it a value, without their dashes; none where it is positional."""
        name = self.field.rstrip("_").replace("_", "-")  # a keyword is a field with a dash below
        return [] if self.positional else [name, f"no-{name}"] if self.kind is bool else [name]

    @property
    def usage(self) -> str:
        """How it is written."""
        return self.metavar if self.positional else f"--{self.options[0]} {self.metavar}"


def parse(
    commands: Mapping[str, type[C]],
    argv: Sequence[str],
    *,
    description: str,
    files: Sequence[Path] | None = None,
) -> C:
    """Read `argv` (without the program's name) as one of `commands`, by name.

    A name may be of two words; then the second may be written as an option: `bench --compare` is
    `bench compare`. `files` replaces the user's file and ./voiceloop.toml. Raises ConfigError for
    an unknown command, option or setting, naming the nearest one, for a value that does not fit,
    and for an argument that is missing or one too many. Help raises SystemExit with status 0.
    """
    settings, rest = _settings(argv)
    options = list(takewhile(lambda argument: argument != "--", rest))
    words = _naming(commands, options)
    name = " ".join(word.removeprefix("--") for word in words)
    helps = any(option in HELP for option in options)
    if helps and (members := _members(commands, name)):
        commands, name = members, ""
    elif name not in commands and (name or not helps):
        raise _no_command(commands, name, options)
    own: dict[str, Any] = {}
    if not helps:
        for word in words:
            rest.remove(word)
        own = _read(name, arguments(commands[name]), rest)
    file = Path(named) if (named := str(settings.pop("config", ""))) else None
    try:
        found = config_files(file) if files is None else [*files, *([file] if file else [])]
        config, origins = load_config(found, settings)
    except ConfigError:
        if not helps:
            raise
        config, origins = load_config((), settings)  # whoever has set something wrong wants help
    common = {"config": file, "settings": config, "origins": origins}
    return _help(commands, common, description, name) if helps else commands[name](**own, **common)


def arguments(kind: type[Command]) -> list[Argument]:
    """A command's arguments besides those that every command takes."""
    common = {item.name for item in dataclasses.fields(Command)}
    kinds, hints = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    found: list[Argument] = []
    for item in dataclasses.fields(kind):
        if item.name not in common:
            marks = get_args(hints[item.name])[1:]
            metavar = next((m.metavar for m in marks if hasattr(m, "metavar")), item.name.upper())
            required = item.default is MISSING and item.default_factory is MISSING
            positional = tyro.conf.Positional in marks
            own: Any = kinds[item.name]
            for bounds in (mark for mark in marks if isinstance(mark, Meta)):
                own = Annotated[own, bounds]
            found.append(Argument(item.name, own, metavar, positional, required))
    return found


def _members(commands: Mapping[str, type[C]], name: str) -> dict[str, type[C]]:
    """The commands of two words whose first is `name`."""
    return {own: kind for own, kind in commands.items() if own.startswith(f"{name} ")}


def _naming(commands: Mapping[str, type[Command]], options: Sequence[str]) -> list[str]:
    """Those of `options` that name a command, as they are written: none, one or two."""
    places = [word for word in options if not word.startswith("-")]
    members = _members(commands, places[0]) if places else {}
    if not members:
        return places[:1]
    seconds = {own.partition(" ")[2] for own in members}
    after = options[options.index(places[0]) + 1 :]
    known = [word for word in after if word.removeprefix("--") in seconds]
    return places[:1] + (known or places[1:])[:1]


def _settings(argv: Sequence[str]) -> tuple[dict[str, str | list[str]], list[str]]:
    """Settings by dotted key, and the arguments that are left; what is a list may come again."""
    settings: dict[str, str | list[str]] = {}
    rest: list[str] = []
    given = deque(argv)
    while given:
        argument = given.popleft()
        flag, equals, value = argument.partition("=")
        key = flag.removeprefix("--").replace("-", "_")
        if argument == "--":
            rest += [argument, *given]
            break
        elif not flag.startswith("--") or (key not in KEYS and key != "config"):
            rest.append(argument)
        else:
            text = value if equals else _value(flag, given)
            many = KEYS.get(key) is Texts
            settings[key] = [*settings.get(key, ()), text] if many else text
    return settings, rest


def _value(flag: str, given: deque[str]) -> str:
    """Take the argument that follows `flag`."""
    if not given or given[0].startswith("--"):
        raise ConfigError(f"{flag} needs a value", f"write it as: {flag}=VALUE")
    return given.popleft()


def _values(flag: str, given: deque[str]) -> list[str]:
    """Take the arguments that follow `flag`, up to the next option."""
    values = [_value(flag, given)]
    while given and not given[0].startswith("-"):
        values.append(given.popleft())
    return values


def _read(name: str, own: Sequence[Argument], given: Sequence[str]) -> dict[str, Any]:
    """The values of a command's own arguments, by field."""
    by_option = {option: argument for argument in own for option in argument.options}
    lists = f"`{PROGRAM} {name} --help` lists what it takes"
    values: dict[str, Any] = {}
    places: list[str] = []
    rest = deque(given)
    while rest:
        word = rest.popleft()
        flag, equals, value = word.partition("=")
        option = flag.removeprefix("--").replace("_", "-")
        if word == "--":
            places += rest
            break
        elif not word.startswith("-"):
            places.append(word)
        elif option not in by_option:
            raise _no_option(flag, by_option, lists)
        elif get_origin((argument := by_option[option]).kind) is tuple:
            kind = get_args(argument.kind)[0]
            texts = [value] if equals else _values(flag, rest)
            read = [converted(kind, text, flag, text=True, hint=lists) for text in texts]
            values[argument.field] = (*values.get(argument.field, ()), *read)
        elif argument.kind is not bool:
            text = value if equals else _value(flag, rest)
            values[argument.field] = converted(argument.kind, text, flag, text=True, hint=lists)
        elif equals:
            raise ConfigError(f"{flag} takes no value", f"leave out '={value}'")
        else:
            values[argument.field] = not option.startswith("no-")
    for argument in own:
        if argument.positional and places:
            many = get_origin(argument.kind) is tuple
            kind = get_args(argument.kind)[0] if many else argument.kind
            taken, places = (places, []) if many else (places[:1], places[1:])
            read = [converted(kind, t, argument.metavar, text=True, hint=lists) for t in taken]
            values[argument.field] = tuple(read) if many else read[0]
    required = [argument for argument in own if argument.required]
    usage = f"write it as: {' '.join([PROGRAM, name, *(item.usage for item in required)])}"
    if missing := [argument.usage for argument in required if argument.field not in values]:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", usage)
    if places:
        raise ConfigError(f"{name} was given one argument too many: '{places[0]}'", usage)
    return values


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
    for flag in (option.partition("=")[0] for option in options):
        if flag.removeprefix("--") not in known:
            return _no_option(flag, [*known, "version"], f"`{PROGRAM} --help` lists the commands")
    return ConfigError("no command was given", choices)


def _no_option(flag: str, known: Iterable[str], lists: str) -> ConfigError:
    name = flag.lstrip("-").replace("_", "-")
    settings = (key.replace("_", "-") for key in KEYS)
    near = MEANT.get(name) or nearest(name, {"help", "config", *known, *settings})
    return ConfigError(f"there is no option {flag}", f"did you mean --{near}?" if near else lists)


def _help(
    commands: Mapping[str, type[Command]], common: Mapping[str, Any], description: str, name: str
) -> Any:
    """Print the help of the command called `name`, or of all if that is empty, and exit."""
    defaults: dict[str, Command] = {}
    for command, kind in commands.items():
        missing = {own.field: tyro.MISSING for own in arguments(kind) if own.required}
        defaults[command] = kind(**missing, **common)
    told = {command: kind.__doc__ or "" for command, kind in commands.items()}
    chosen: Any = tyro.extras.subcommand_type_from_defaults(defaults, told, prefix_names=False)
    version = tyro.conf.arg(help="Print the version and exit.", help_behavior_hint="")
    program = dataclasses.make_dataclass(
        PROGRAM,
        [
            ("command", Annotated[chosen, tyro.conf.arg(name="")]),
            ("version", Annotated[bool, tyro.conf.FlagCreatePairsOff, version], False),
        ],
    )
    argv = [name, "--help"] if name else ["--help"]
    return tyro.cli(program, prog=PROGRAM, description=description, args=argv)
