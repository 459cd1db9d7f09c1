"""The command line: which command, its own options, and the settings that it runs with.

Flags that name a setting (`--asr.model base.en`) are one more layer of the configuration, checked
like a file's; tyro parses the rest and prints the help, with the merged settings as defaults. This
module does not know what the commands do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import tyro

from voiceloop.config import KEYS, Config, config_files, load_config, nearest
from voiceloop.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Command:
    """What every command takes; each command is a subclass with its own options."""

    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A TOML file of settings; it wins over the user's file and ./voiceloop.toml."""
    settings: Annotated[Config, tyro.conf.arg(name="")] = field(default_factory=Config)
    """All settings, merged."""
    origins: tyro.conf.Suppress[Mapping[str, str]] = field(default_factory=dict[str, str])
    """Where each setting comes from, by dotted key."""


C = TypeVar("C", bound=Command)


def parse(
    commands: Mapping[str, type[C]],
    argv: Sequence[str],
    *,
    description: str,
    files: Sequence[Path] | None = None,
) -> C:
    """Read `argv` (without the program's name) as one of `commands`, by name.

    `files` replaces the user's file and ./voiceloop.toml. Raises ConfigError for an unknown
    command, option or setting, naming the nearest one, and for a setting's wrong value. Help, and
    what tyro finds wrong with a command's own arguments, raise SystemExit: with status 0, and 2.
    """
    settings, rest = _settings(argv)
    _check(commands, rest)
    file = settings.pop("config", None)
    found = config_files() if files is None else list(files)
    config, origins = load_config([*found, Path(file)] if file else found, settings)
    common = {"config": Path(file) if file else None, "settings": config, "origins": origins}
    defaults = {name: kind(**_required(kind), **common) for name, kind in commands.items()}
    union: Any = tyro.extras.subcommand_type_from_defaults(
        defaults, {name: kind.__doc__ or "" for name, kind in commands.items()}, prefix_names=False
    )
    return tyro.cli(union, prog="voiceloop", description=description, args=rest)


def _settings(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Settings by dotted key, and the arguments that are left."""
    settings: dict[str, str] = {}
    rest: list[str] = []
    arguments = iter(argv)
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        key = flag.removeprefix("--").replace("-", "_")
        if argument == "--":
            rest += [argument, *arguments]
        elif not flag.startswith("--") or (key not in KEYS and key != "config"):
            rest.append(argument)
        elif equals:
            settings[key] = value
        else:
            try:
                settings[key] = next(arguments)
            except StopIteration:
                raise ConfigError(f"{flag} needs a value") from None
    return settings, rest


def _check(commands: Mapping[str, type[Command]], rest: Sequence[str]) -> None:
    """Refuse a command or an option that does not exist, in one line."""
    before = rest[: rest.index("--")] if "--" in rest else rest
    names = [argument for argument in before if not argument.startswith("-")]
    if names and names[0] not in commands:
        near = nearest(names[0], commands)
        raise ConfigError(
            f"there is no command '{names[0]}'",
            f"did you mean '{near}'?" if near else f"choose one of: {', '.join(commands)}",
        )
    kinds = [commands[names[0]]] if names else list(commands.values())
    own = {option for kind in kinds for option in _options(kind)}
    known = {"help"} | own | {f"no-{name}" for name in own}
    for argument in before:
        name = argument.partition("=")[0].removeprefix("--").replace("_", "-")
        if argument.startswith("--") and name not in known and not name.startswith("tyro-"):
            near = nearest(name, known | {key.replace("_", "-") for key in KEYS})
            raise ConfigError(
                f"there is no option --{name}",
                f"did you mean --{near}?" if near else "`--help` lists all options",
            )


def _options(kind: type[Command]) -> list[str]:
    """The options that a command has besides the settings."""
    hidden = (tyro.conf.Positional, tyro.conf.Suppress)
    return [
        name.replace("_", "-")
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if name != "settings" and not any(mark in hidden for mark in get_args(hint)[1:])
    ]


def _required(kind: type[Command]) -> dict[str, Any]:
    return {
        item.name: tyro.MISSING
        for item in dataclasses.fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    }
