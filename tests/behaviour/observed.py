"""What comes of a generated conversation, as lines of text: all that is shown or sent and when,
and all that the models were asked. Everything runs on the virtual clock."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import numpy as np

from tests.behaviour.generated import Case, Client
from tests.support.clock import VirtualClock
from tests.support.run import WALL_CLOCK, play, quietly, scripted_engines
from tests.support.scenario import UserSound
from tests.support.scripted import ScriptedLlm, ScriptedTts
from tests.support.user import Lexicon, Piece
from voiceloop.audio.frames import SPEECH_RATE, to_pcm16
from voiceloop.errors import ProtocolError
from voiceloop.replay.recorded import in_order
from voiceloop.server.session.audio import RATE
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.client_session import ClientSession, Host
from voiceloop.trace.record import Lane
from voiceloop.types import Event, Pcm, TurnTrace, Word
from voiceloop.wire.items import maker
from voiceloop.wire.parsing import parse, parse_binary
from voiceloop.wire.server_events import Error, ServerEvent

COMPLETED = "conversation.item.input_audio_transcription.completed"
EVENTS_OF_A_TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
    "conversation.item.input_audio_transcription.delta",
    COMPLETED,
]
"""The types of the events that tell a client of a turn of its user, in order."""
FRAME_S = 0.02
"""Audio in one message of a client."""
REST_S = 4.0
"""How long a client stays after all that it does."""
LEVEL, STEP = 0.2, 0.005
"""Word k is a tone of peak `LEVEL + k * STEP`, which 16 bits and another rate tell apart."""
TONE_HZ = 1000
GAP_S = 0.015
"""Silence at the end of a word, behind which the next one begins."""
ENOUGH = 0.8
"""Part of a word that a window must hold for the word to be recognised."""


RENAMED = {
    re.escape(", client=False"): "",
    re.escape(", result=''"): "",
    r"(?<=misunderstands people)(; for this machine: [^\"]*)?": (
        "; for real models: voiceloop models pull cpu, then --preset cpu"
    ),
    re.escape(',"languages":["en","fr"]'): "",
    re.escape('"code":"nothing_heard","message":"no words were understood"'): (
        '"code":null,"message":"there was nothing to answer"'
    ),
}
"""Patterns of what is called otherwise than when the first conversations were recorded, was not
told, or depends on the machine."""


def observed(case: Case, *, seed: int = 0) -> list[str]:
    """Everything that comes of `case`, in order; `seed` is the scheduler's, and changes nothing."""
    if case.client is not None:
        return _of_client(case, case.client, seed)
    replay = play(case.scenario, seed=seed)
    lines = [f"{at:.6f} {_as_recorded(event)!r}" for at, event in replay.shown]
    lines += [f"said {at:.6f} {say.what}" for at, say in replay.said]
    return [*_renamed(lines), f"problem {replay.problem}"]


def _renamed(lines: Sequence[str]) -> list[str]:
    """The lines with the names that were used in the records."""
    whole = "\n".join(lines)
    for new, old in RENAMED.items():
        whole = re.sub(new, old, whole)
    return whole.splitlines()


def _as_recorded(event: Event) -> Event:
    """The event without the spans of whole replies and tools: the first records had none."""
    if not isinstance(event, TurnTrace):
        return event
    return replace(event, spans=tuple(one for one in event.spans if one.lane != Lane.REPLY))


def digest(lines: Sequence[str]) -> str:
    """What stands for the lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


class WireLexicon(Lexicon):
    """Words that are read back after they were sent at 24 kHz in 16 bits."""

    def sound(self, piece: Piece) -> Pcm:
        count = round(piece.seconds * RATE)
        pcm = np.zeros(count, np.float32)
        if piece.text:
            self._words.append(piece)
            level = LEVEL + len(self._words) * STEP
            sounding = np.arange(count - round(GAP_S * RATE))
            pcm[: len(sounding)] = level * np.sin(2 * np.pi * TONE_HZ / RATE * sounding)
        return pcm

    def read(self, pcm: Pcm, *, final: bool) -> list[Word]:
        del final
        if not len(pcm):
            return []
        cycle = SPEECH_RATE // TONE_HZ
        peaks = np.sqrt(2 * np.convolve(pcm**2, np.ones(cycle) / cycle, "same"))[: len(pcm)]
        loud = np.concatenate(([False], peaks > LEVEL / 2, [False]))
        edges = np.flatnonzero(loud[1:] != loud[:-1]).tolist()
        words: list[Word] = []
        for start, end in list(pairwise(edges))[::2]:
            number = round((float(np.median(peaks[start:end])) - LEVEL) / STEP)
            if not 0 < number <= len(self._words):
                continue
            word = self._words[number - 1]
            if word.text and end - start >= ENOUGH * word.seconds * SPEECH_RATE:
                words.append(Word(word.text, start / SPEECH_RATE, end / SPEECH_RATE))
        return words


class Told(Host):
    """Keeps what a client is told, and what it can refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.items: list[str] = []
        self.messages: list[str] = []
        self.calls: list[str] = []
        self._unsent: dict[str, int] = {}

    def put(self, event: ServerEvent) -> None:
        text = event.to_json(f"event_{len(self.lines)}")
        self.note(text)
        told = json.loads(text)
        if told["type"] == "conversation.item.added":
            item = told["item"]
            self.items.append(item["id"])
            if item["type"] == "message" and item["role"] == "assistant":
                self.messages.append(item["id"])
            if item["type"] == "function_call":
                self.calls.append(item["call_id"])

    def flush(self, item_id: str) -> int:
        self.note(f"flush {item_id}")
        return 0

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        self.note(f"refused {error.code}")
        self.put(Error.of(error, event_id))

    def ended(self, trace: TurnTrace) -> None:
        self.note(repr(_as_recorded(in_order(trace))))

    def note(self, line: str) -> None:
        self.lines.append(f"{anyio.current_time():.6f} {line}")

    def filled_in(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message with what it refers to."""
        known = {"$item": self.items, "$message": self.messages, "$call": self.calls}

        def fill(value: object) -> object:
            if isinstance(value, dict):
                return {key: fill(inner) for key, inner in value.items()}
            if isinstance(value, str) and value in known:
                return known[value][-1] if known[value] else "nothing"
            return value

        return {key: fill(value) for key, value in message.items()}


def _of_client(case: Case, client: Client, seed: int) -> list[str]:
    clock, lexicon, told = VirtualClock(seed), WireLexicon(), Told()
    engines = scripted_engines(case.scenario, lexicon, clock)
    tts = engines.tts
    assert isinstance(tts, ScriptedTts) and isinstance(engines.llm, ScriptedLlm)
    tts.rate, tts.word_samples = RATE, round(case.scenario.stages.tts_word_s * RATE)
    model = engines.llm

    async def converse() -> None:
        dialogue = ClientConversation(
            engines, case.scenario.config, model.conversation(), maker(Random(0)), WALL_CLOCK
        )
        if client.transcribes:
            dialogue.transcribe()
        visit = ClientSession(dialogue, told, told)
        visit.welcome()
        size = round(FRAME_S * RATE)
        # Less the last frame, of which nobody could say whether it is heard before all is over.
        microphone = _microphone(case, lexicon)[:-size]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(visit.run)
            sends = [*client.sends]
            lost_at = client.lost_at
            for frame in range(round((case.seconds + REST_S) / FRAME_S)):
                now = frame * FRAME_S
                await clock.wait(now, 0)
                if lost_at is not None and now >= lost_at:
                    lost_at = None
                    await visit.stop()
                    visit = ClientSession(dialogue, told, told)
                    visit.welcome_back()
                    tasks.start_soon(visit.run)
                while sends and sends[0][0] <= now:
                    _send(visit, told, sends.pop(0)[1])
                piece = microphone[frame * size : (frame + 1) * size]
                if len(piece):
                    audio = to_pcm16(piece).tobytes()
                    visit.handle(parse_binary(audio))
            tasks.cancel_scope.cancel()
        dialogue.close()

    with quietly():
        clock.run(converse)
    asked = [f"asked {what} {details!r}" for what, details in model.log]
    return [
        *_renamed(told.lines),
        *asked,
        *(f"spoken {voice} {text!r}" for voice, text in tts.spoken),
    ]


def _microphone(case: Case, lexicon: WireLexicon) -> Pcm:
    """All that the client's user says, at 24 kHz."""
    pcm = np.zeros(round((case.seconds + REST_S) * RATE), np.float32)
    for at, text in case.speech:
        pieces = UserSound(text=text).say().pieces
        sound = np.concatenate([lexicon.sound(piece) for piece in pieces])
        start = round(at * RATE)
        pcm[start : start + len(sound)] = sound[: len(pcm) - start]
    return pcm


def _send(visit: ClientSession, told: Told, message: dict[str, Any]) -> None:
    text = json.dumps(told.filled_in(message))
    told.note(f"sent {text}")
    try:
        visit.handle(parse(text))
    except ProtocolError as error:
        told.note(f"refused {error.code} {error.param} {error.message}; {error.hint}")
