"""The command `voiceloop config`."""

from __future__ import annotations

import json
import sys

from voiceloop.choosing import best_settings
from voiceloop.config import SECTIONS, McpServer, flatten
from voiceloop.flags import Command
from voiceloop.settingsfile import settings_file
from voiceloop.terminal import tell


class ShowConfig(Command, frozen=True, kw_only=True):
    """Show every setting, its value, and the origin of the value."""

    uses = SECTIONS
    examples = ("voiceloop config --preset cpu", "voiceloop config --toml > mine.toml")

    toml: bool = False
    """Print a TOML file of all settings to edit, with a comment for each."""


def show_config(command: ShowConfig) -> int:
    """Run `voiceloop config` and return the exit status."""
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


def _without_secrets(value: object) -> str:
    """Return a text for a value that JSON cannot write. For an MCP server it is only the program
    or the address, since variables and headers may hold secrets."""
    if not isinstance(value, McpServer):
        return str(value)
    return value.command or value.url.partition("?")[0].rpartition("@")[2]
