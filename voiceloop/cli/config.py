"""The command `voiceloop config`."""

from __future__ import annotations

import json
import sys

import msgspec

from voiceloop.assembly.choosing import best_settings
from voiceloop.errors import ConfigError
from voiceloop.settings.config import (
    SECTIONS,
    McpServer,
    flatten,
    given_in_settings,
    load_config,
)
from voiceloop.settings.files import keep, settings_file, user_file, write
from voiceloop.settings.flags import Command
from voiceloop.terminal import tell


class ShowConfig(Command, frozen=True, kw_only=True):
    """Show every setting, its value, and the origin of the value."""

    uses = SECTIONS
    examples = ("voiceloop config --preset cpu", "voiceloop config --write --tts.speed 1.2")

    toml: bool = False
    """Print a TOML file of all settings to edit, with a comment for each."""
    write: bool = False
    """Set the settings that flags give in your file, and make it if there is none, with a comment
    for each setting. The file is that of --config, else ~/.config/voiceloop/config.toml."""


def show_config(command: ShowConfig) -> int:
    """Run `voiceloop config` and return the exit status."""
    if command.write:
        return _write(command)
    settings, origins = best_settings(command.settings, command.origins)
    if command.toml:
        text = settings_file(settings, origins)
        sys.stdout.buffer.write(text.encode())  # TOML is always UTF-8, unlike some terminals
        return 0
    for key, value in flatten(settings).items():
        origin = origins.get(key, "default")
        shown = json.dumps(value, default=_without_secrets)
        tell(f"{key:<28} {shown:<32} {origin}")
    return 0


def _write(command: ShowConfig) -> int:
    """Write the user's file of settings, or change it, and say where it is."""
    if command.toml:
        raise ConfigError("--toml prints and --write writes", "give one of the two")
    file, new = command.config or user_file(), False
    given = given_in_settings(command.settings, command.origins)
    flags = {
        # TOML knows neither None nor tuples.
        key: "none" if value is None else msgspec.json.decode(msgspec.json.encode(value))
        for key, (value, origin) in given.items()
        if origin == "flag"
    }
    if not file.exists():
        write(settings_file(*load_config()), file)
        new = True
    keep(flags, file)
    what = "lists all settings" if new else f"has {', '.join(flags) or 'what it had'}"
    tell(f"{file} {what}; `voiceloop config --toml` prints all")
    return 0


def _without_secrets(value: object) -> str:
    """Return a text for a value that JSON cannot write. For an MCP server it is only the program
    or the address, since variables and headers may hold secrets."""
    if not isinstance(value, McpServer):
        return str(value)
    return value.command or value.url.partition("?")[0].rpartition("@")[2]
