"""`voiceloop talk` as a user meets it, over a sound card that PulseAudio makes up.

Without headphones the microphone hears the speaker, as in a room: but for the echo canceller every
reply would be answered. What the user says comes from the voices that the starter recogniser was
trained on, so that recogniser is asked for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from models.train.questions import spoken
from models.train.voices import Voice
from tests.card.pulse import RATE, VirtualCard, hurry, require_portaudio
from tests.cli.test_main import assert_one_line_and_a_hint
from tests.server.serving import BY_ITSELF, until
from voiceloop.audio.portaudio import INSTALLERS
from voiceloop.bundled import bundled
from voiceloop.cli.main import main
from voiceloop.recording.format import MICROPHONE, SPEAKER
from voiceloop.replay.recorded import differences, shown

pytestmark = pytest.mark.audio

QUESTIONS = {
    "What is the capital of France?": "Paris",
    "What is 7 times 8?": "56",
    "How many ounces are in 3 pounds?": "48 ounces",
    "Who wrote Hamlet?": "Hamlet",
    "What is the opposite of hot?": "cold",
    "What year did the Berlin Wall fall?": "Berlin",
    "How do I make tea?": "boiling water",
    "I need to know 5 plus 12.": "17",
    "Set a timer for 5 minutes.": "timer",
    "What is the opposite of big?": "small",
}
"""What is asked, and what of the answer must come back out of the loudspeaker."""


LOST = "has stopped working: the conversation goes on when one is connected"

MAIN = """
import signal, sys
# What a shell runs in the background is deaf to Ctrl-C, and so would be all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
from voiceloop.__main__ import main
sys.exit(main())
"""


class Talk:
    """The process, and the lines that it prints."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        command = [sys.executable, "-X", "faulthandler", "-c", MAIN, "talk", "--json", *BY_ITSELF]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*command, *options], env=environment, stdout=pipe, stderr=pipe
        )
        hurry(self.process)
        self.notes: list[str] = []
        self.turns: Queue[dict[str, Any]] = Queue()
        """Turns that are over, but for sounds without words: a busy machine leaves gaps in what
        sounds, and a gap can be heard as a crack."""
        self.listening = threading.Event()
        self._readers = [threading.Thread(target=read) for read in (self._out, self._err)]
        for reader in self._readers:
            reader.start()

    def _out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if (turn := json.loads(line))["outcome"] != "abandoned":
                self.turns.put(turn)

    def _err(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.notes.append(line.decode().strip())
            if "listening to" in self.notes[-1]:
                self.listening.set()
        self.listening.set()

    def turn(self) -> dict[str, Any]:
        """The next turn that is over."""
        try:
            return self.turns.get(timeout=60)
        except Empty:
            pytest.fail("\n".join(["no turn is over", *self.notes]))

    def noted(self, text: str) -> None:
        """Wait for a note with this text."""
        deadline = time.monotonic() + 60
        while not any(text in note for note in self.notes):
            assert time.monotonic() < deadline, self.notes
            time.sleep(0.05)

    def interrupt(self) -> int:
        """Press Ctrl-C; returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> int:
        """Wait until it has ended; if that takes too long, show where every thread of it is."""
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            time.sleep(1)
            pytest.fail("\n".join(["it does not end", *self.notes]))
        finally:
            self.process.kill()
            self.process.wait()
            for reader in self._readers:
                reader.join()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()


def say(card: VirtualCard, text: str) -> None:
    """Speak to the microphone."""
    card.say(spoken(text, Voice("espeak", "en-us")))


def sounded(card: VirtualCard, begin: int) -> bool:
    """Whether the speaker has sounded since the sample `begin`."""
    return bool(np.abs(card.heard()[begin:]).max(initial=0) > 0.01)


def wake(card: VirtualCard) -> None:
    """Say the wake word until the chime sounds: a busy machine loses samples of a word."""
    for _ in range(5):
        begun = len(card.heard())
        say(card, "Okay Nabu.")
        for _ in range(30):
            if sounded(card, begun):
                return
            time.sleep(0.1)
    pytest.fail("the wake word is not heard")


@pytest.mark.parametrize("card", [False], indirect=True)
def test_two_spoken_turns_are_answered_and_recorded(card: VirtualCard, tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    options = ("--asr.engine", "whisper", "--headphones", "--record", str(recordings))
    talk = Talk(card.environment, *options)
    try:
        assert talk.listening.wait(120)
        for question in list(QUESTIONS)[:2]:
            say(card, question)
            turn = talk.turn()
            assert turn["outcome"] == "done", (turn, talk.notes)
    finally:
        status = talk.interrupt()
    assert status == 0, talk.notes
    assert talk.turns.empty(), "it answered itself"
    assert any(f"recording what is said and decided in {recordings}" in one for one in talk.notes)
    (folder,) = recordings.iterdir()
    assert not differences(folder)
    outcomes = [trace.outcome for trace in shown(folder).traces]
    assert [outcome for outcome in outcomes if outcome != "abandoned"] == ["done", "done"]
    for name in (MICROPHONE, SPEAKER):
        assert np.abs(sf.read(folder / name)[0]).max() > 0.01


@pytest.mark.parametrize("card", [False], indirect=True)
def test_after_the_wake_word_a_conversation_is_kept_and_goes_on(card: VirtualCard) -> None:
    pytest.importorskip("pymicro_wakeword", reason="pymicro-wakeword is not installed")
    kept = ["--asr.engine", "whisper", "--headphones", "--conversation", "desk"]
    talk = Talk(card.environment, *kept, "--wake.model", "okay_nabu")
    try:
        assert talk.listening.wait(120)
        say(card, "Who wrote Hamlet?")  # to somebody else
        time.sleep(2.0)
        wake(card)
        say(card, "What is the capital of France?")
        turn = talk.turn()
        assert (turn["outcome"], talk.turns.empty()) == ("done", True), turn
    finally:
        status = talk.interrupt()
    assert status == 0, talk.notes
    told = run(card.environment, "conversations", "show", "desk").stdout
    assert "capital of France" in told and "Paris" in told
    assert "Hamlet" not in told and "abu" not in told
    begun = len(card.heard())
    talk = Talk(card.environment, *kept)
    try:
        assert talk.listening.wait(120)
        until(lambda: sounded(card, begun))  # the greeting
    finally:
        assert talk.interrupt() == 0, talk.notes


def run(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run voiceloop to its end."""
    command, pipe = [sys.executable, "-m", "voiceloop", *argv], subprocess.PIPE
    with subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe) as process:
        hurry(process)
        said, noise = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode, said, noise)


def test_what_is_said_and_answered_is_heard_from_the_speaker(
    card: VirtualCard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(card.environment, "say", "The capital of France is Paris.")
    assert done.returncode == 0, done.stderr
    before = len(card.heard())
    demo, out = str(bundled("models/starter/demo.wav")), tmp_path / "reply.wav"
    asked = run(card.environment, "ask", demo, "--play", "--json", "--out", str(out))
    assert asked.returncode == 0, asked.stderr
    time.sleep(0.5)
    sf.write(tmp_path / "said.wav", card.heard()[:before], RATE)
    assert main(["transcribe", "--json", str(tmp_path / "said.wav")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["text"].lower().strip(".?") == "the capital of france is paris"
    assert out.is_file()


@pytest.mark.parametrize("card", [False], indirect=True)
def test_a_conversation_goes_on_when_a_card_is_back_that_was_unplugged(
    card: VirtualCard, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.json"
    options = ("--asr.engine", "whisper", "--headphones", "--trace", str(trace))
    talk = Talk(card.environment, *options)
    try:
        assert talk.listening.wait(120)
        say(card, "What is the capital of France?")
        assert talk.turn()["outcome"] == "done"
        card.unplug()
        talk.noted("has stopped working: the conversation goes on")
        card.plug()
        talk.noted("is back")
        time.sleep(2.0)  # a sink that has just begun renders in jerks
        say(card, "What is 7 times 8?")
        while not (turn := talk.turn())["transcript"]:  # a crack of the sound that broke off
            pass
        assert "56" in turn["reply"]
    finally:
        status = talk.interrupt()
    assert status == 0
    assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("card", "options"),
    [(False, ["--headphones"]), (True, [])],
    ids=["headphones", "loudspeaker"],
    indirect=["card"],
)
def test_a_reply_is_interrupted(card: VirtualCard, options: list[str]) -> None:
    talk = Talk(card.environment, "--asr.engine", "whisper", *options)
    try:
        assert talk.listening.wait(120)
        if not options:  # whether the echo is removed is tried with the first reply
            say(card, "Why is the sky blue?")
            assert talk.turn()["outcome"] == "done"
        say(card, "Why is the sky blue?")
        until(lambda: sounded(card, -RATE // 5))
        time.sleep(0.5)
        say(card, "What is the capital of France?")
        first = talk.turn()
        # The starter may make no words of what comes through a loudspeaker's echo.
        second = talk.turn() if options else None
    finally:
        status = talk.interrupt()
    assert first["outcome"] == "interrupted"
    assert first["reply"].startswith(first["heard"])
    assert 0 < len(first["heard"]) < len(first["reply"])
    assert second is None or second["outcome"] == "done"
    assert status == 0


def test_a_device_that_cannot_be_opened_is_named(card: VirtualCard) -> None:
    code = (
        "import sounddevice\n"
        "print(sounddevice.query_devices(), flush=True)\n"
        "input()\n"
        "from voiceloop.errors import DeviceError\n"
        "from voiceloop.audio.soundcard import SoundcardMicrophone\n"
        "try: SoundcardMicrophone()\n"
        "except DeviceError as error: print(error.message, error.hint, sep='\\n')"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, env=card.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert "default" in process.stdout.readline()
        card.unplug()
        time.sleep(0.2)
        try:
            said, noise = process.communicate("\n", timeout=60)
        finally:
            process.kill()
    message, hint = said.strip().splitlines()[-2:]
    assert message.startswith("the microphone 'default' cannot be opened: ")
    assert "sound server" in hint and "--input" in hint
    assert not noise


@pytest.mark.parametrize("way", ["input", "output"])
def test_an_unknown_name_is_answered_with_those_there_are(card: VirtualCard, way: str) -> None:
    talk = Talk(card.environment, f"--{way}", "nosuch")
    assert talk.end() == 2
    assert_one_line_and_a_hint("\n".join(talk.notes))
    assert "'nosuch'" in talk.notes[0]
    assert "'default'" in talk.notes[1]


def test_the_devices_are_listed_and_tried(card: VirtualCard) -> None:
    def devices(*options: str) -> str:
        done = run(card.environment, "devices", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    inputs, outputs = devices().split("speakers, for --output:\n")
    assert inputs.startswith("microphones, for --input:\n")
    (line,) = (one for one in inputs.splitlines() if " default  (" in one)
    assert line.startswith("*") and " Hz, " in line and " default  (" in outputs
    number = line[1:].split()[0]
    for _ in range(3):
        tried = devices("--test", "--input", number)
        if "the sound had gaps" not in tried:  # as on a busy machine
            break
    assert "trying 'default'" in tried
    assert "the microphone hears the speaker at" in tried
    assert "talk removes that, and you can interrupt it" in tried


PULSE = 'pcm.pulse { type pulse hint { show on description "PulseAudio" } }\n'
OPENED = """
import json, subprocess, sys, time
from voiceloop.audio.portaudio import open_stream

def listed(what):
    done = subprocess.run(["pactl", "--format=json", "list", what], stdout=subprocess.PIPE)
    return json.loads(done.stdout)

name, stream = open_stream("output", sys.argv[1], lambda *_: None, lambda: None)
stream.start()
sinks = {one["index"]: one["name"] for one in listed("sinks")}
players = [one for one in listed("sink-inputs") if "ALSA" in json.dumps(one)]
print(name, *(sinks[one["sink"]] for one in players), sep="|")
stream.close()
"""


@pytest.mark.parametrize("card", [False], indirect=True)
def test_a_device_of_the_sound_server_is_listed_and_chosen_by_name(
    card: VirtualCard, require_program: Callable[[str], Path]
) -> None:
    require_program("pactl")
    with Path(card.environment["ALSA_CONFIG_PATH"]).open("a") as config:
        config.write(PULSE)
    done = run(card.environment, "devices")
    assert done.returncode == 0, done.stderr
    inputs, outputs = done.stdout.split("speakers, for --output:\n")
    assert inputs.count("(of the sound server)") == 1, "monitors are no microphones"
    assert outputs.count("(of the sound server)") == 2
    for part in "user", "USER":
        opened = subprocess.run(
            [sys.executable, "-c", OPENED, part],
            env=card.environment,
            capture_output=True,
            text=True,
        )
        name, sink = opened.stdout.strip().split("|")
        assert sink == "user" and f" {name}  (of the sound server)" in outputs
    talk = Talk(card.environment, "--output", "nosuch")
    assert talk.end() == 2 and f"'{name}'" in talk.notes[1]


@pytest.mark.parametrize(
    ("what", "named"),
    [
        *INSTALLERS.items(),
        ("nothing", "the installer of your system"),
        ("no sound server", "libasound2-plugins"),
    ],
)
def test_what_is_missing_is_said_with_a_remedy(what: str, named: str, tmp_path: Path) -> None:
    environment = dict(os.environ)
    if what != "no sound server":  # PortAudio is missing, and this program could install it
        (tmp_path / "sounddevice.py").write_text("raise OSError('not found')\n")
        (tmp_path / what).write_text("")
        (tmp_path / what).chmod(0o755)
        environment |= {"PYTHONPATH": str(tmp_path), "PATH": str(tmp_path)}
    else:
        require_portaudio()
        config = tmp_path / "asound.conf"
        config.write_text("pcm.default { type pulse }\n")
        environment |= {"ALSA_CONFIG_PATH": str(config), "PULSE_SERVER": "unix:/no/such/socket"}
    talk = Talk(environment)
    assert talk.end() == 2
    assert_one_line_and_a_hint("\n".join(talk.notes))
    assert named in talk.notes[1]
