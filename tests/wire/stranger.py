"""What a careless or hostile peer sends: valid messages, damaged at random from a seed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

SESSION = {
    "type": "realtime",
    "instructions": "Be brief.",
    "output_modalities": ["audio"],
    "tool_choice": "none",
    "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
    "max_output_tokens": 200,
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "whisper-1", "language": "en"},
            "noise_reduction": None,
            "turn_detection": {"type": "server_vad", "threshold": 0.5, "idle_timeout_ms": 6000},
        },
        "output": {"voice": "marin", "speed": 1},
    },
    "voiceloop": {"binary_audio": True, "pause": False},
}
MESSAGE = {
    "type": "message",
    "role": "user",
    "content": [
        {"type": "input_text", "text": "naïve ☕"},
        {"type": "input_audio", "audio": "AAECAw==", "transcript": None},
    ],
}
CALL = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "call_1"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}
OVERRIDES = {
    "conversation": "none",
    "output_modalities": ["text"],
    "metadata": {"purpose": "topic"},
    "max_output_tokens": "inf",
}
VALID: list[dict[str, Any]] = [
    {"type": "session.update", "event_id": "e1", "session": SESSION},
    {"type": "input_audio_buffer.append", "audio": "AAECAwQF"},
    {"type": "input_audio_buffer.commit"},
    {"type": "conversation.item.create", "item": MESSAGE, "previous_item_id": "root"},
    {"type": "conversation.item.create", "item": CALL},
    {"type": "conversation.item.create", "item": OUTPUT, "event_id": None},
    {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 9},
    {"type": "conversation.item.delete", "item_id": "i"},
    {"type": "response.create", "response": OVERRIDES},
    {"type": "response.cancel", "response_id": "r"},
    {"type": "voiceloop.played", "item_id": "i", "audio_ms": 12.5},
    {"type": "voiceloop.resume", "token": "t"},
    {"type": "voiceloop.session.token.received"},
]
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 24000.0, 2**53, 2**64, 0.1, 1e308, "", "x", "root", "A" * 5000),
    *([], {}, [[]], [None] * 200, {"type": "message"}, {"": ""}, {"a": {"b": {"c": []}}}),
    *("AAA", "AAA=", "AB==", "====", "AA\n==", "é", "\ud800", "\x00", "\u2028"),
]
ODD_TEXTS = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-0", "01", "9" * 5000, "1" * 300 + ".5"),
    *("\\ud800", "\\u0000", "\\x", "\ufeff", "\x00", "\n", '"', "\\", "'", ",", ":", "{", "}"),
    *("[", "]", "[" * 40, "{" * 2000, '{"a":' * 40, "[]," * 9, "null", "true", "é", "\U0001f642"),
]
KEYS = ["type", "role", "event_id", "id", "object", "session", "audio", "input", "text", "", "é"]


def damaged(random: Random) -> str:
    """A text that is near a valid message."""
    value = copy.deepcopy(random.choice(VALID))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        _damage_value(value, random)
    text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        text = _damage_text(text, random)
    return text


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: the object or list, and the key or index."""
    if isinstance(value, (dict, list)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield value, key
            yield from places(value[key])


def _damage_value(value: dict[str, Any], random: Random) -> None:
    found = list(places(value))
    if not found:
        return
    holder, key = random.choice(found)
    kind = random.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[random.choice(KEYS)] = copy.deepcopy(random.choice(ODD_VALUES))
    elif kind == 2:
        holder[key] = copy.deepcopy(random.choice(found)[0])
    else:
        holder[key] = copy.deepcopy(random.choice(ODD_VALUES))


def _damage_text(text: str, random: Random) -> str:
    start = random.randrange(len(text) + 1)
    end = min(len(text), start + random.choice((0, 0, 1, 1, 3, 50)))
    return text[:start] + random.choice(["", *ODD_TEXTS]) + text[end:]
