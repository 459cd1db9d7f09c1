"""Clients that send valid events at random, from a seed, and know what has to come back."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection, connect

from tests.server.serving import Event, to_wire
from tests.server.shells import BOTH, LOOK
from tests.server.traced import spoken

PATIENCE_S = 300.0
"""Seconds after which what has not come never will, however busy the machine is."""
TEXTS = (
    LOOK,
    BOTH,
    "What time is it",
    "What time is it in Paris",
    "Hello",
    "",
    " ",
    "é☕\x00\n",
    "x" * 2000,
)
SAID = ("What time is it", "What time", "it is")
LOOKS = {"type": "function", "name": "look", "description": "", "parameters": {"type": "object"}}
ODD = {
    "type": "function",
    "name": "weather.größe 2",
    "parameters": {"properties": {"a": {"$ref": "#/a"}}},
}
WORD_S = 0.22
"""The shortest word that the recogniser reads: what is heard costs more than all other events."""
FORMATS = ("audio/pcm", "audio/pcm", "audio/pcmu", "audio/pcma")


@cache
def sound(text: str) -> bytes:
    """Words as audio of messages."""
    return to_wire(spoken(text, WORD_S), 16_000)


@dataclass
class Talker:
    """One visit: what was sent, and what came back."""

    seed: str
    events: list[Event] = field(default_factory=list[Event])
    asked: set[str] = field(default_factory=set[str])
    """Ids of the events that requested responses."""
    statuses: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.items, self.calls, self.responses = ["root", "nobody"], ["nobody"], ["nobody"]
        self.open: set[str] = set()
        """Ids of the responses that are in progress."""
        self._told = anyio.Event()

    async def visit(self, url: str, count: int) -> None:
        """Send `count` events, and wait for the answers to all of them."""
        with anyio.fail_after(PATIENCE_S + count):
            # Pings would be answered after all that was sent before them.
            options: dict[str, Any] = {"ping_interval": None, "open_timeout": None}
            async with connect(url, max_size=None, compression=None, **options) as socket:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, socket)
                    for number in range(count):
                        await socket.send(self._event())
                        if self.random.random() < 0.02:
                            await self._is_answered(socket, f"barrier {number}")
                        if self.open and self.random.random() < 0.005:
                            await socket.send(_text("input_audio_buffer.clear"))
                            await self._until(lambda open=set(self.open): open - self.open)
                    await self._rests(socket)
                    tasks.cancel_scope.cancel()

    async def _rests(self, socket: ClientConnection) -> None:
        """Be silent until all that was asked for is over."""
        quiet = {"audio": {"input": {"turn_detection": None}}}
        await socket.send(_text("session.update", session={"type": "realtime", **quiet}))
        await socket.send(_text("input_audio_buffer.clear"))
        await self._is_answered(socket, "the last barrier")
        await self._until(lambda: not self.asked and not self.open)
        await self._is_answered(socket, "the very last barrier")

    async def _is_answered(self, socket: ClientConnection, name: str) -> None:
        self.asked.add(name)
        await socket.send(_text("conversation.item.retrieve", item_id="nobody", event_id=name))
        await self._until(lambda: name not in self.asked)

    async def _until(self, condition: Any) -> None:
        while not condition():
            told = self._told
            with anyio.move_on_after(PATIENCE_S) as scope:
                await told.wait()
            assert not scope.cancel_called, (self.seed, self.asked, self.open, self.events[-9:])

    # ---- what comes

    async def _read(self, socket: ClientConnection) -> None:
        async for message in socket:
            if isinstance(message, str):
                self._take(json.loads(message))
            self._told.set()
            self._told = anyio.Event()
        raise AssertionError((self.seed, socket.close_code, socket.close_reason, self.events[-9:]))

    def _take(self, event: Event) -> None:
        if event["type"] not in ("response.output_audio.delta", "session.updated"):
            self.events.append(event)
        match event["type"]:
            case "error":
                error = event["error"]
                assert error["type"] == "invalid_request_error", (self.seed, error)
                self.errors[str(error["code"])] += 1
                self.asked.discard(error["event_id"])
            case "response.created":
                response = event["response"]
                self.asked.discard((response["metadata"] or {}).get("asked"))
                self.open.add(response["id"])
                self.responses.append(response["id"])
            case "response.done":
                response = event["response"]
                assert response["id"] in self.open, (self.seed, response)
                self.open.discard(response["id"])
                self.statuses[response["status"]] += 1
                if response["status"] == "failed":
                    self.statuses[str(response["status_details"]["error"])] += 1
                self.calls += [one["call_id"] for one in response["output"] if "call_id" in one]
            case "conversation.item.added":
                self.items.append(event["item"]["id"])
            case _:
                pass

    # ---- what is sent

    def _event(self) -> str | bytes:
        pick = self.random.choice
        match self.random.choices(*zip(*WEIGHTS.items(), strict=True))[0]:
            case "sound":
                return _text("input_audio_buffer.append", audio=b64encode(self._sound()).decode())
            case "binary":
                return self._sound()
            case "create":
                before = {"previous_item_id": pick(self.items[-8:])} if self._chance(0.2) else {}
                return _text("conversation.item.create", item=self._item(), **before)
            case "output":
                return _text("conversation.item.create", item=self._output())
            case "truncate":
                end = pick((0, 20, 300, 10**6, 2**53))
                return _text(
                    "conversation.item.truncate",
                    item_id=pick(self.items[-6:]),
                    content_index=0,
                    audio_end_ms=end,
                )
            case "played":
                return _text(
                    "voiceloop.played", item_id=pick(self.items[-6:]), audio_ms=pick((0, 99.5, 1e9))
                )
            case "respond":
                return self._respond()
            case "cancel":
                which = {"response_id": pick(self.responses[-4:])} if self._chance(0.5) else {}
                return _text("response.cancel", **which)
            case "update":
                return _text("session.update", session={"type": "realtime", **self._session()})
            case "conversation.item.retrieve" | "conversation.item.delete" as kind:
                return _text(kind, item_id=pick(self.items[-12:]))
            case kind:
                return _text(kind)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _sound(self) -> bytes:
        """Words, a part of one, silence, or nothing."""
        words = sound(self.random.choice(SAID))
        part = words[: 2 * self.random.randrange(len(words) // 2)]
        return self.random.choice((words, part, bytes(4800), bytes(4800), bytes(28_800), b""))

    def _item(self) -> dict[str, Any]:
        text = self.random.choice(TEXTS)
        known = {"id": f"own_{self.random.randrange(999)}"} if self._chance(0.1) else {}
        match self.random.randrange(8):
            case 0:
                part = {"type": "input_text", "text": text}
                return {"type": "message", "role": "system", "content": [part], **known}
            case 1:
                part = {"type": "output_text", "text": text}
                return {"type": "message", "role": "assistant", "content": [part], **known}
            case 2:
                audio = b64encode(self._sound()).decode()
                part = {"type": "input_audio", "audio": audio, "transcript": text}
                return {"type": "message", "role": "user", "content": [part], **known}
            case 3:
                call = f"own_{self.random.randrange(99)}"
                self.calls.append(call)
                arguments = self.random.choice(("{}", "", "no JSON", '{"a": [null]}'))
                named = {"name": "look", "call_id": call, "arguments": arguments}
                return {"type": "function_call", **named, **known}
            case _:
                parts = [{"type": "input_text", "text": text}] * self.random.choice((1, 1, 1, 0, 3))
                return {"type": "message", "role": "user", "content": parts, **known}

    def _output(self) -> dict[str, Any]:
        """The output of the newest call, or of an older one: late, or once more."""
        call = self.calls[-1] if self._chance(0.5) else self.random.choice(self.calls)
        output = self.random.choice(("sunny", "", "{}", "é\x00", "y" * 5000))
        return {"type": "function_call_output", "call_id": call, "output": output}

    def _respond(self) -> str:
        name = f"asked {len(self.asked)} {self.random.random()}"
        self.asked.add(name)
        response: dict[str, Any] = {"metadata": {"asked": name}}
        if self._chance(0.3):
            response["conversation"] = "none"
        if self._chance(0.3):
            reference = {"type": "item_reference", "id": self.random.choice(self.items[-6:])}
            others = [self._item() for _ in range(self.random.randrange(3))]
            response["input"] = others + [reference] * self._chance(0.3)
        response |= self._both()
        if self._chance(0.2):
            output = {"voice": self._voice(), "format": {"type": self.random.choice(FORMATS)}}
            response["audio"] = {"output": output}
        return _text("response.create", event_id=name, response=response)

    def _both(self) -> dict[str, Any]:
        """Settings that sessions and responses have."""
        pick = self.random.choice
        settings = {
            "instructions": pick(("", "Be brief.", "z" * 3000)),
            "output_modalities": [pick(("audio", "text"))],
            "tools": pick(([], [LOOKS], [LOOKS, ODD])),
            "tool_choice": pick(("auto", "none", "required", {"type": "function", "name": "look"})),
            "parallel_tool_calls": pick((True, False)),
            "reasoning": {"effort": pick((None, "minimal", "high"))},
            "max_output_tokens": pick((1, 2, 4096, "inf")),
        }
        return {key: value for key, value in settings.items() if self._chance(0.15)}

    def _voice(self) -> str:
        return self.random.choice(("own", "other", "alloy", "nobody"))

    def _session(self) -> dict[str, Any]:
        pick = self.random.choice
        shared = {"create_response": self._chance(0.8), "interrupt_response": self._chance(0.8)}
        detection = pick(
            (
                {"type": "server_vad", **shared, "silence_duration_ms": pick((0, 200, 500))},
                {"type": "server_vad", **shared, "threshold": pick((0, 0.5, 1))},
                {"type": "server_vad", "idle_timeout_ms": 5000, "prefix_padding_ms": 60_000},
                {"type": "semantic_vad", **shared, "eagerness": pick(("low", "high", "auto"))},
                None,
            )
        )
        heard = {
            "turn_detection": detection,
            "transcription": pick(({}, None, {"language": "en"}, {"language": "xx"})),
            "format": {"type": pick(FORMATS)},
        }
        spoken = {
            "format": {"type": pick(FORMATS)},
            "voice": self._voice(),
            "speed": pick((0.25, 1, 1.5)),
        }
        names = ("binary_audio", "tentative_words", "traces", "pause", "clauses", "resume")
        audio = {
            "input": {key: value for key, value in heard.items() if self._chance(0.4)},
            "output": {key: value for key, value in spoken.items() if self._chance(0.3)},
        }
        added = {name: self._chance(0.5) for name in names if self._chance(0.3)}
        return {**self._both(), "audio": audio, "voiceloop": added}


WEIGHTS = {
    "sound": 22,
    "binary": 4,
    "input_audio_buffer.commit": 5,
    "input_audio_buffer.clear": 3,
    "create": 17,
    "output": 7,
    "conversation.item.delete": 6,
    "conversation.item.retrieve": 4,
    "truncate": 4,
    "played": 3,
    "respond": 15,
    "cancel": 5,
    "update": 5,
}
"""What is sent, and how much of each in a hundred."""


def _text(kind: str, **fields: object) -> str:
    return json.dumps({"type": kind, **fields})
