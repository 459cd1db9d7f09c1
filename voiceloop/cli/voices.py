"""The command `voiceloop voices`."""

from __future__ import annotations

import json
import sys

from voiceloop import process
from voiceloop.assembly.choosing import best_settings
from voiceloop.errors import ModelNotFound
from voiceloop.settings.config import given_in_settings
from voiceloop.settings.flags import Command
from voiceloop.status import loading, print_error, tts_name
from voiceloop.terminal import tell


class Voices(Command, frozen=True, kw_only=True):
    """List the voices here, by language, and those that can be pulled.

    The voice of `talk` and `serve` is marked.
    """

    uses = ("tts",)
    examples = ("voiceloop voices", "voiceloop voices --tts.engine espeak --json")

    json: bool = False
    """Print one JSON object on one line for each voice."""


def voices(command: Voices) -> int:
    """Run `voiceloop voices` and return the exit status."""
    config, _ = best_settings(command.settings, command.origins)
    named = "tts.engine" in given_in_settings(command.settings, command.origins)
    settings, tts, absent = config.tts, None, None
    with loading(tts_name(settings), sys.stderr):
        process.configure(config.threads)
        from voiceloop.assembly.loading import load_tts
        from voiceloop.cli.voicelist import listed, table
        from voiceloop.engines import registered

        try:
            tts = load_tts(config)
        except ModelNotFound as error:  # the list shows how to pull it, and other voices
            absent = error
        found = listed(settings, tts)
    if command.json:
        print(*(json.dumps(one.record()) for one in found), sep="\n")
    else:
        for line in table(settings, tts, found, whole=named):
            tell(line)
        others = [name for name in registered("tts") if name != settings.engine]
        tell(f"other engines, by --tts.engine: {', '.join(others)}")
    if absent:
        print_error(absent)
    return 0
