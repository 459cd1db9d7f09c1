"""Says thirty requests to six tools of a user's own, and thirty sentences of chatter, to sessions.

    python -m lab.tools.run --preset laptop --out calls.json
    python -m lab.tools.run --preset laptop --spoken

Each sentence is the first turn of a session of its own. It is typed. With `--spoken` the configured
voice says it first, and the recogniser's transcript is typed. A request is right if it leads to the
right call and to no other. Chatter is right if it leads to no call. Any setting may be given as a
flag.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from lab.tools.judge import SpokenRequest, read, wrong
from lab.tools.own import OWN
from lab.typed import hold_all, save, typing
from voiceloop.assembly.loading import load_asr, load_tts, load_vad
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import HighPass
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.process import configure
from voiceloop.settings.config import Config
from voiceloop.settings.flags import Command, parse, written
from voiceloop.status import engine_names
from voiceloop.tools.results import room
from voiceloop.tools.toolbox import Toolbox
from voiceloop.turn.skills import Skills

REQUESTS = Path(__file__).with_name("requests.toml")


class CallTools(Command, frozen=True, kw_only=True):
    """Say requests for tools, and chatter, and count the right calls."""

    out: Annotated[Path | None, written("C.json")] = None
    """Write all calls with their faults."""
    spoken: bool = False
    """Let the voice say each sentence, and type the recogniser's transcript."""


def heard(requests: Sequence[SpokenRequest], config: Config) -> Mapping[str, str]:
    """Let the voice say each request. Return the recogniser's transcripts, by request."""
    from voiceloop.asr.recording import transcribe_recording
    from voiceloop.cli.say import write

    configure(config.threads)
    tts, asr, vad, found = load_tts(config), load_asr(config), load_vad(config), dict[str, str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "said.wav"
        for request in requests:
            write(tts, request.say, path)
            with AudioFile(path) as file:
                blocks = map(HighPass().feed, file.blocks())
                hear = transcribe_recording(blocks, vad, asr, config.asr, config.turns)
                finals = [transcript.text for transcript in hear if transcript.final]
            vad.reset()
            found[request.say] = " ".join(finals)
    return found


async def ask(
    texts: Mapping[str, str], request: SpokenRequest, engines: Engines, config: Config
) -> list[Any]:
    """Type a request in a session of its own. Return the record of the turn. `texts` has what is
    typed, by request; without an entry it is the request."""
    said = texts.get(request.say, request.say)
    own = Toolbox(OWN, most_chars=room(config.llm))
    skills = Skills(paced=engines.tts.paces)
    async with typing(engines, config, skills, datetime.now, own) as session:
        await session.say(said)
    record = {
        "say": request.say,
        "heard": said,
        "meant": request.call,
        "calls": [{"name": call.name, **call.arguments} for call in session.calls],
        "reply": session.text,
        "wrong": wrong(request, session.calls),
    }
    return [record]


def table(records: Sequence[Any]) -> list[str]:
    """Return lines that count the right turns, and that show every fault."""
    lines = list[str]()
    for name, those in (
        ("requests", [record for record in records if record["meant"]]),
        ("chatter", [record for record in records if not record["meant"]]),
    ):
        right = sum(not record["wrong"] for record in those)
        lines.append(f"{name:<10} {right:>3} of {len(those)}")
    for record in records:
        if record["wrong"]:
            lines += ["", record["say"], f"  {record['wrong']}", f"  {record['reply']}"]
    return lines


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    command = parse({"run": CallTools}, ["run", *argv])
    assert isinstance(command, CallTools), "its help is above"
    requests = read(tomllib.loads(REQUESTS.read_text(encoding="utf-8")))
    texts = heard(requests, command.settings) if command.spoken else {}
    records = hold_all(requests, partial(ask, texts), command)
    print(*table(records), sep="\n")
    if command.out:
        save(command.out, {"running": engine_names(command.settings), "calls": records})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except VoiceloopError as error:
        sys.exit(f"{error.message}\n{error.hint}")
