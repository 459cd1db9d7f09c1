"""The command `voiceloop voices`."""

from __future__ import annotations

import json
import sys

from voiceloop import startup
from voiceloop.errors import ModelNotFound
from voiceloop.flags import Command
from voiceloop.status import loading, print_error, tts_name
from voiceloop.terminal import tell


class Voices(Command, frozen=True, kw_only=True):
    """List the voices here, by language, and those that can be pulled."""

    uses = ("tts",)
    examples = ("voiceloop voices --preset cpu", "voiceloop voices --tts.engine espeak --json")

    json: bool = False
    """Print one JSON object on one line for each voice."""


def voices(command: Voices) -> int:
    """Run `voiceloop voices` and return the exit status."""
    settings, tts, absent = command.settings.tts, None, None
    with loading(tts_name(settings), sys.stderr):
        startup.configure(command.settings.threads)
        from voiceloop.engines import registered
        from voiceloop.loading import load_tts
        from voiceloop.voicelist import listed, table

        try:
            tts = load_tts(command.settings)
        except ModelNotFound as error:  # the list shows how to pull it, and other voices
            absent = error
        found = listed(settings, tts)
    if command.json:
        print(*(json.dumps(one.record()) for one in found), sep="\n")
    else:
        for line in table(settings, tts, found):
            tell(line)
        others = [name for name in registered("tts") if name != settings.engine]
        tell(f"other engines, by --tts.engine: {', '.join(others)}")
    if absent:
        print_error(absent)
    return 0
