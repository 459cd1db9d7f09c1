"""Conversations by seed: users who pause, interrupt, cough and agree, models that call tools, are
slow or break, settings of every kind, and clients of the server who ask for all that they may.

What comes of each is recorded (`observed`), so that a change of the code which changes what a
conversation does cannot pass unseen. Nothing here knows what should come of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec.structs import replace

from tests.support.scenario import Failure, Scenario, ScriptedReply, Stages, UserSound
from voiceloop.settings.config import AsrConfig, Config, LlmConfig, TurnConfig
from voiceloop.turn.resources import OVERLAPS

QUESTIONS = (
    "Tell me about the sky",
    "What time is it",
    "And what about the sea",
    "How old is the moon",
    "Set a timer of five seconds",
    "Is it",
    "I would like to",
    "No wait I meant the sun",
    "Where does the rain come from and where does it go",
    "Thank you",
    "Why",
    "Look up and down",
)
SHORT = ("uh-huh", "yes", "mm-hmm", "okay", "the", "no", "stop", "wait", "yes yes", "the sky is")
REPLIES = (
    "The sky is blue, and it goes on and on and on, over the hills and far away, for ever.",
    "It is five past two.",
    "Yes.",
    "",
    "The sea is deep. It is also wide, and full of fish! Would you like to hear more of it?",
    "**Well**, there are 3 things:\n- one\n- two\n\n`x = 1`",
    "😀",
    "I do not know, but somebody who has been there for a very long time once told me that it was "
    "older than all of us together, and that nobody should ask.",
)
TOOLS = ("set_timer", "look", "look", "no_such")
NAMES = (
    "speculative",
    "streaming",
    "sequential",
    *(name for name in OVERLAPS if name.startswith("no-")),
)
"""In this order, since what a seed chooses depends on it."""


@dataclass(frozen=True, slots=True)
class Client:
    """What a client of the server does: when, and which message it sends."""

    sends: Sequence[tuple[float, dict[str, Any]]]
    """Seconds and messages, in order. `$item`, `$call` and `$voice` stand for an item of the
    conversation, a call, and audio of what the user says, which are known when it is sent."""
    lost_at: float | None = None
    """When its connection breaks; it comes back at once."""
    transcribes: bool = False
    """It has come for the words of its user alone."""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation at a microphone, or of a client."""

    scenario: Scenario
    client: Client | None = None
    seconds: float = 0.0
    """How long a client stays."""
    speech: Sequence[tuple[float, str]] = field(default_factory=tuple)
    """When the client's user says what; words, and silences in seconds in parentheses."""


def case(seed: int) -> Case:
    """The conversation of a seed; those of odd ones are of clients."""
    rng = Random(seed)
    return _of_client(rng) if seed % 2 else Case(_at_microphone(rng))


def _at_microphone(rng: Random) -> Scenario:
    sounds = [_sound(rng, number) for number in range(rng.randint(1, 6))]
    return replace(
        _world(rng),
        full_duplex=rng.random() < 0.75,
        overlap="speculative" if rng.random() < 0.75 else rng.choice(NAMES),
        silence_s=rng.choice((0.5, 1.5, 6.0)),
        patience_s=8.0,
        limit_s=600.0,
        user=tuple(sounds),
    )


def _sound(rng: Random, number: int) -> UserSound:
    kind = rng.random()
    noise = rng.choice((0.1, 0.2, 0.5)) if kind > 0.85 else 0.0
    text = "" if noise else _with_pauses(rng, rng.choice(SHORT if kind > 0.6 else QUESTIONS))
    mishears = bool(text) and rng.random() < 0.15
    misheard = {text.split()[-1]: rng.choice(("", "sigh", "see"))} if mishears else {}
    sound = UserSound(
        text=text,
        noise_s=noise,
        word_s=rng.choice((0.1, 0.3, 0.3, 0.4)),
        misheard=misheard,
    )
    if number == 0:
        return replace(sound, at=rng.choice((0.2, 0.5)))
    after = rng.choice(("speech", "sound", "sound", "reply"))
    return replace(sound, after=after, delay_s=round(rng.choice((0.1, 0.5, 2.0)) * rng.random(), 2))


def _with_pauses(rng: Random, text: str) -> str:
    words = text.split()
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        words.insert(rng.randint(1, len(words)), f"({rng.choice((0.1, 0.2, 0.3, 0.5, 0.9, 1.4))})")
    while words[-1].startswith("("):  # a silence at the end is none of the user's
        words.pop()
    return " ".join(words)


def _world(rng: Random) -> Scenario:
    """What everything but the user is like."""
    return Scenario(
        stages=_stages(rng),
        end_of_turn=_ends(rng, 0.5),
        end_by_sound=_ends(rng, 0.5) if rng.random() < 0.25 else {},
        reply=tuple(_answer(rng, to) for to in (*QUESTIONS, *SHORT, None)),
        fail=_failures(rng),
        config=_settings(rng),
    )


def _stages(rng: Random) -> Stages:
    return Stages(
        asr_partial_s=rng.choice((0.02, 0.05, 0.05, 0.3)),
        asr_final_s=rng.choice((0.05, 0.08, 0.08, 0.6)),
        asr_window_s=rng.choice((30.0, 30.0, 30.0, 3.0)),
        sound_s=rng.choice((0.02, 0.1)),
        llm_prefill_s=rng.choice((0.01, 0.03, 0.03, 0.2)),
        llm_burst_s=rng.choice((0.01, 0.03, 0.03, 0.2)),
        llm_burst_words=rng.choice((1, 3, 3, 8)),
        tts_first_s=rng.choice((0.02, 0.04, 0.3)),
        tts_step_s=rng.choice((0.01, 0.02, 0.2)),
        tts_chunk_words=rng.choice((0, 0, 1, 3)),
        tts_word_s=rng.choice((0.1, 0.25, 0.25, 0.5)),
    )


def _ends(rng: Random, share: float) -> dict[str, float]:
    texts = [*QUESTIONS, *SHORT]
    texts += [text.rsplit(" ", n)[0] for text in QUESTIONS for n in (1, 2, 3)]
    chosen = [text for text in texts if rng.random() < share]
    return {text: rng.choice((0.001, 0.015, 0.05, 0.2, 0.9)) for text in chosen}


def _answer(rng: Random, to: str | None) -> ScriptedReply:
    answer = ScriptedReply(to=to, says=rng.choice(REPLIES))
    if rng.random() < 0.2:
        name = rng.choice(TOOLS)
        arguments = {"seconds": rng.choice((2, 5))} if name == "set_timer" else {}
        return replace(answer, calls=name, arguments=arguments, then=rng.choice(REPLIES))
    return answer


def _failures(rng: Random) -> tuple[Failure, ...]:
    if rng.random() < 0.9:
        return ()
    stage = rng.choice(("asr", "llm", "tts"))
    return (Failure(stage, rng.choice(("sky", "sea", "it", "is", ""))),)


def _settings(rng: Random) -> Config:
    turns = TurnConfig(
        endpoint=rng.choice(("auto", "auto", "auto", "p-eot", "trailing-words", "fixed")),
        hangover_ms=rng.choice((500, 500, 300, 800)),
        complete_ms=rng.choice((88, 88, 200)),
        incomplete_ms=rng.choice((1100, 1100, 600)),
        pre_roll_ms=rng.choice((300, 0)),
        max_turn_s=rng.choice((60.0, 60.0, 60.0, 2.0)),
        max_guesses=rng.choice(("auto", "auto", 0, 1)),
    )
    asr = AsrConfig(
        language=rng.choice(("en", "en", "en", "auto")), partial_every_ms=rng.choice((240, 100))
    )
    return Config(turns=turns, asr=asr, llm=LlmConfig(skills="none"))


# ---- clients

LOOK = {"type": "function", "name": "look", "description": "", "parameters": {}}


def _of_client(rng: Random) -> Case:
    seconds = rng.choice((6.0, 12.0, 20.0))
    sends: list[tuple[float, dict[str, Any]]] = [(0.05, _update(rng))]
    sends += [
        (round(rng.uniform(0.1, seconds), 2), _message(rng)) for _ in range(rng.randint(0, 10))
    ]
    if rng.random() < 0.4:  # turns by hand, or a client that asks twice
        for _ in range(rng.randint(1, 3)):
            at = round(rng.uniform(1.0, seconds), 2)
            sends.append((at, {"type": "input_audio_buffer.commit"}))
            sends.append((round(at + rng.choice((0.0, 0.02, 0.5)), 2), _ask(rng)))
    sends.sort(key=lambda sent: (sent[0], json.dumps(sent[1])))
    lost_at = round(rng.uniform(1.0, seconds), 2) if rng.random() < 0.15 else None
    return Case(_world(rng), Client(sends, lost_at), seconds, _speech(rng, seconds))


def _speech(rng: Random, seconds: float) -> list[tuple[float, str]]:
    speech: list[tuple[float, str]] = []
    at = rng.uniform(0.2, 1.0)
    while at < seconds - 2 and rng.random() < 0.9:
        text = _with_pauses(rng, rng.choice(QUESTIONS if rng.random() < 0.7 else SHORT))
        speech.append((round(at, 2), text))
        at += 0.3 * len(text.split()) + rng.choice((0.5, 1.5, 3.0, 6.0))
    return speech


def _update(rng: Random) -> dict[str, Any]:
    interrupts = rng.random() < 0.85
    creates = rng.random() < 0.85
    shared = {"create_response": creates, "interrupt_response": interrupts}
    detection = rng.choice(
        (
            {"type": "server_vad", **shared, "silence_duration_ms": rng.choice((200, 500, 900))},
            {"type": "server_vad", **shared, "idle_timeout_ms": 5000},
            {"type": "semantic_vad", **shared, "eagerness": rng.choice(("low", "high", "auto"))},
            {"type": "semantic_vad", **shared},
            None,
        )
    )
    session: dict[str, Any] = {
        "type": "realtime",
        "audio": {"input": {"turn_detection": detection, "transcription": rng.choice(({}, None))}},
        "voiceloop": {
            name: rng.random() < 0.5 for name in ("tentative_words", "traces", "pause", "resume")
        },
    }
    if rng.random() < 0.3:
        session["tools"] = [LOOK]
    if rng.random() < 0.2:
        session["output_modalities"] = ["text"]
    if rng.random() < 0.2:
        session["instructions"] = rng.choice(("Be brief.", "Be kind."))
    if rng.random() < 0.15:
        session["max_output_tokens"] = rng.choice((1, 5, 12))
    if rng.random() < 0.2:
        session["audio"]["output"] = {"voice": rng.choice(("other", "own", "alloy", "nobody"))}
    return {"type": "session.update", "session": session}


def _ask(rng: Random) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if rng.random() < 0.2:
        asked["instructions"] = "Be loud."
    if rng.random() < 0.2:
        asked["conversation"] = "none"
    if rng.random() < 0.2:
        asked["output_modalities"] = [rng.choice(("text", "audio"))]
    if rng.random() < 0.2:
        asked["tools"] = [LOOK]
    if rng.random() < 0.1:
        asked["max_output_tokens"] = 4
    return {"type": "response.create", **({"response": asked} if asked else {})}


def _message(rng: Random) -> dict[str, Any]:
    text = rng.choice(QUESTIONS)
    part = {"type": "input_text", "text": text}
    message = {"type": "message", "role": "user", "content": [part]}
    output = {"type": "function_call_output", "call_id": "$call", "output": "up"}
    kinds: tuple[dict[str, Any], ...] = (
        _ask(rng),
        _ask(rng),
        {"type": "response.cancel"},
        {"type": "conversation.item.create", "item": message},
        {"type": "conversation.item.create", "item": output},
        {"type": "conversation.item.delete", "item_id": "$item"},
        {"type": "conversation.item.retrieve", "item_id": "$item"},
        {
            "type": "conversation.item.truncate",
            "item_id": "$message",
            "content_index": 0,
            "audio_end_ms": rng.choice((0, 300, 900, 60_000)),
        },
        {"type": "voiceloop.played", "item_id": "$message", "audio_ms": rng.choice((0, 300, 900))},
        {"type": "input_audio_buffer.clear"},
        {"type": "input_audio_buffer.commit"},
        _update(rng),
    )
    return rng.choice(kinds)
