"""Stock clients hold a conversation with `voiceloop serve`, one after the other: `make clients`.

    python -m tests.clients.run [--turns N] [CLIENT ...]

With `--turns` a conversation has N turns: a greeting, and then the others in their order, again
and again.
Each client is a program in an environment of its own (.clients), unmodified, and tells what came
back in each step as a line of JSON. Here it is judged: a table comes last, and the status is 1
where anything went wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from models.train.domain.talk import STORIES
from models.train.questions import spoken
from models.train.voices import Voice
from tests.server.serving import serving, to_wire

HERE = Path(__file__).parent / "stock"
HOME = Path(__file__).parents[2] / ".clients"
PATIENCE_S = 60.0
TURN_PATIENCE_S = 15.0
"""A client takes a third of it, and of so much for each turn."""

PROGRAMS = {
    "livekit-agents": [str(HOME / "bin/python"), str(HERE / "livekit_agents.py")],
    "pipecat-ai": [str(HOME / "bin/python"), str(HERE / "pipecat_ai.py")],
    "openai-agents": [str(HOME / "bin/python"), str(HERE / "openai_agents.py")],
    "@openai/agents": ["node", str(HOME / "openai_agents.mjs")],
}

TIME = json.dumps({"time": "7:42 PM", "day": "Monday", "date": "June 1"})
CAPITAL = "What is the capital of France?"
PARIS = "The capital of France is Paris."
SCRIPT = {
    "instructions": "You are a helpful assistant.",
    "greeting": "Greet the user.",
    "typed": "What is the capital of Spain?",
    "tool": "What time is it?",
    "tool_output": TIME,
    "story": "Tell me a story.",
    "interrupt_after_s": 1.5,
    "history": [
        {"type": "message", "role": "user", "text": "What is the capital of Italy?"},
        {"type": "message", "role": "assistant", "text": "The capital of Italy is Rome."},
        {"type": "message", "role": "user", "text": "What time is it?"},
        {"type": "function_call", "call_id": "call_1", "name": "get_time"},
        {"type": "function_call_output", "call_id": "call_1", "name": "get_time", "output": TIME},
        {"type": "message", "role": "assistant", "text": "It is 7:42 PM."},
    ],
    "again": "Say that again.",
}
"""What the clients say; the bundled models know answers to it."""

Came = dict[str, Any]
Check = Callable[[Came], bool]


def _cut(came: Came) -> bool:
    """The server's history has the beginning of the story, as far as the client has played it."""
    kept, whole = came["kept"], STORIES["a fox"]
    return 0 < len(kept) < len(whole) / 2 and whole.startswith(kept)


STEPS: dict[str, tuple[str, Check]] = {
    "greeting": ("asks for a response to nothing", lambda came: bool(came["reply"])),
    "spoken": (
        f"says: {CAPITAL}",
        lambda came: came["heard"] == CAPITAL and came["reply"] == PARIS,
    ),
    "typed": (f"writes: {SCRIPT['typed']}", lambda came: "Madrid" in came["reply"]),
    "tool": (
        f"writes: {SCRIPT['tool']}",
        lambda came: came["called"] == ["get_time"] and came["reply"] == "It is 7:42 PM.",
    ),
    "interrupted": (
        f"speaks while a story sounds: {CAPITAL}",
        lambda came: _cut(came) and came["reply"] == PARIS,
    ),
    "stopped": ("stops a story while it sounds", _cut),
    "restored": (
        f"brings a former conversation, and writes: {SCRIPT['again']}",
        # Pipecat packs a conversation into one message, which is beyond the bundled model.
        lambda came: "It is 7:42 PM." in came.get("packed", came["reply"]),
    ),
}
"""What a client does in each step, and whether that came back which should."""


GREETING, *TURNS, RESTORED = STEPS


def told(stream: Iterator[str]) -> Iterator[tuple[str, Came]]:
    """What a client tells of its steps; whatever else it prints is shown."""
    for line in stream:
        if line.startswith("{"):
            came = json.loads(line)
            yield came.pop("step"), came
        else:
            print(f"  {line.rstrip()}")


def refused(page: str) -> list[str]:
    """Codes of the errors that the server has answered with."""
    with urlopen(f"{page}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'^voiceloop_refused_messages_total\{code="(\w+)"\} (\S+)', text, re.M)
    return [code for code, count in found if float(count)]


def held(name: str, folder: Path, turns: Sequence[str]) -> dict[str, str]:
    """Let a client have its conversation; what is wrong in each step, by the step's name."""
    print(f"\n{name}")
    left = Counter([*turns, RESTORED])
    faults = dict.fromkeys(STEPS, "")
    with serving(folder, "--log-transcripts") as server:
        command = [*PROGRAMS[name], server.page, str(folder)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(PATIENCE_S + TURN_PATIENCE_S * len(turns), client.kill)
        timer.start()
        assert client.stdout is not None
        for step, came in told(client.stdout):
            does, check = STEPS[step]
            left[step] -= 1
            faults[step] += "" if check(came) else f"not what was expected: {came} "
            print(f"  {'ok   ' if check(came) else 'WRONG'} {step:11}  {does}  ->  {shown(came)}")
        timer.cancel()
        if client.wait():
            faults["end"] = f"the client ended with status {client.returncode}"
        for step, count in (+left).items():
            faults[step] += f"it never came to {count} of them"
        errors = refused(server.page)
        # A response may be over by the time that its client stops it.
        if errors := [code for code in errors if code != "response_cancel_not_active"]:
            faults["refused"] = f"the server refused messages: {', '.join(errors)}"
        if any(faults.values()):
            print(server.log.read_text())
    return faults


def shown(came: Came) -> str:
    """What came back, in a line."""
    return ", ".join(f"{key}: {' '.join(str(value).split())[:70]}" for key, value in came.items())


def main() -> int:
    """Run the clients that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=1 + len(TURNS))
    parser.add_argument("names", nargs="*", default=list(PROGRAMS), metavar="CLIENT")
    given = parser.parse_args()
    names = given.names
    turns = [GREETING, *islice(cycle(TURNS), given.turns - 1)]
    shutil.copy(HERE / "openai_agents.mjs", HOME)  # Node looks for packages beside the program
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    results: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "script.json").write_text(json.dumps({**SCRIPT, "turns": turns}))
        question = spoken(CAPITAL, Voice("espeak", "en-us"))
        (folder / "capital.pcm").write_bytes(to_wire(question, 16_000))
        for name in names:
            results[name] = held(name, folder, turns)
    print(f"\n{'':15}", *(f"{step:11}" for step in STEPS))
    for name, faults in results.items():
        print(f"{name:15}", *(f"{'WRONG' if faults[step] else 'ok':11}" for step in STEPS))
    wrong = [(name, *one) for name, found in results.items() for one in found.items() if one[1]]
    for name, step, fault in wrong:
        print(f"{name}: {step}: {fault}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
