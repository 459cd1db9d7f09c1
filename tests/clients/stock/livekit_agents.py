"""LiveKit Agents: an AgentSession with its Realtime model, and a microphone and speaker of its own.

A room would bring the sound from elsewhere and take it there; nothing else is different.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool, llm
from livekit.agents.voice import io
from livekit.plugins import openai
from steps import FRAME, RATE, SCRIPT, URL, Microphone, run, told, until


class Ear(io.AudioInput):
    """The session's audio input: what the microphone gives."""

    def __init__(self, microphone: Microphone) -> None:
        super().__init__(label="microphone")
        self._microphone = microphone

    async def __anext__(self) -> rtc.AudioFrame:
        return rtc.AudioFrame(await self._microphone.frame(), RATE, 1, FRAME // 2)


class Speaker(io.AudioOutput):
    """The session's audio output: it plays nothing, and takes as long as the sound does."""

    def __init__(self) -> None:
        super().__init__(
            label="speaker",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=RATE,
        )
        self._begun = 0.0
        self.queued_s = 0.0
        self._playing: asyncio.TimerHandle | None = None

    def played_s(self) -> float:
        return min(self.queued_s, time.time() - self._begun) if self.queued_s else 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self.queued_s:
            self._begun = time.time()
            self.on_playback_started(created_at=self._begun)
        self.queued_s += frame.duration

    def flush(self) -> None:
        super().flush()
        if self.queued_s:
            left = self.queued_s - self.played_s()
            self._playing = asyncio.get_running_loop().call_later(left, self._end, False)

    def clear_buffer(self) -> None:
        if self.queued_s:
            self._end(True)

    def _end(self, interrupted: bool) -> None:
        if self._playing:
            self._playing.cancel()
            self._playing = None
        played = self.played_s()
        self.queued_s = 0.0
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class Clock(Agent):
    """An agent with one tool."""

    def __init__(self, chat_ctx: llm.ChatContext | None = None) -> None:
        super().__init__(instructions=SCRIPT["instructions"], chat_ctx=chat_ctx)
        self.called: list[str] = []

    @function_tool
    async def get_time(self) -> str:
        """The time."""
        self.called.append("get_time")
        return SCRIPT["tool_output"]


class Talk:
    """A session that has begun, and what it has told."""

    def __init__(self) -> None:
        self.model = openai.realtime.RealtimeModel(base_url=URL + "/v1", api_key="none")
        self.session = AgentSession(llm=self.model, aec_warmup_duration=None)
        self.microphone = Microphone()
        self.speaker = Speaker()
        self.session.input.audio = Ear(self.microphone)
        self.session.output.audio = self.speaker
        self.messages: list[llm.ChatMessage] = []
        self.session.on("conversation_item_added", lambda event: self.messages.append(event.item))
        self.events: list[dict] = []

    async def begin(self, agent: Clock) -> None:
        self.agent = agent
        await self.session.start(agent)
        self.connection = agent.realtime_llm_session
        self.connection.on("openai_server_event_received", self.events.append)

    async def end(self) -> None:
        await self.session.aclose()
        await self.model.aclose()

    def texts(self, role: str, since: int = 0) -> list[str]:
        """What was said to its end."""
        own = [one for one in self.messages[since:] if one.type == "message" and one.role == role]
        return [one.text_content for one in own if not one.interrupted]

    async def event(self, kind: str, since: int) -> dict:
        """The first event of a kind, once it has come."""
        await until(lambda: any(event["type"] == kind for event in self.events[since:]))
        return next(event for event in self.events[since:] if event["type"] == kind)

    async def turn(self, kind: str) -> dict:
        """What came back in one turn."""
        match kind:
            case "greeting":
                await self.session.generate_reply(instructions=SCRIPT["greeting"])
                return {"reply": self.texts("assistant")[-1]}
            case "spoken":
                count = len(self.messages)
                self.microphone.say("capital.pcm")
                await until(lambda: len(self.messages) >= count + 2)
                return {"heard": self.texts("user")[-1], "reply": self.texts("assistant")[-1]}
            case "typed":
                await self.session.generate_reply(user_input=SCRIPT["typed"])
                return {"reply": self.texts("assistant")[-1]}
            case "tool":
                self.agent.called = []
                await self.session.generate_reply(user_input=SCRIPT["tool"])
                return {"called": self.agent.called, "reply": self.texts("assistant")[-1]}
            case "interrupted":
                return await self.cut(lambda: self.microphone.say("capital.pcm"), follow=True)
            case _:
                return await self.cut(self.session.interrupt, follow=False)

    async def cut(self, stop: Callable[[], object], *, follow: bool) -> dict:
        """Interrupt a story while it sounds."""
        since, said = len(self.events), len(self.messages)
        self.session.generate_reply(user_input=SCRIPT["story"])
        await until(lambda: self.speaker.played_s() > SCRIPT["interrupt_after_s"])
        stop()
        truncated = await self.event("conversation.item.truncated", since)
        await until(lambda: any(getattr(one, "interrupted", False) for one in self.messages[said:]))
        came = {"cut_ms": truncated["audio_end_ms"]}
        if follow:
            await until(lambda: self.texts("assistant", said))
            came["reply"] = self.texts("assistant", said)[-1]
        retrieve = {"type": "conversation.item.retrieve", "item_id": truncated["item_id"]}
        since = len(self.events)
        self.connection.send_event(retrieve)
        retrieved = await self.event("conversation.item.retrieved", since)
        return {"kept": retrieved["item"]["content"][0]["transcript"], **came}


async def conversation() -> None:
    talk = Talk()
    await talk.begin(Clock())
    for kind in SCRIPT["turns"]:
        told(kind, **await talk.turn(kind))
    await talk.end()


def history() -> llm.ChatContext:
    context = llm.ChatContext.empty()
    for one in SCRIPT["history"]:
        match one["type"]:
            case "message":
                context.add_message(role=one["role"], content=one["text"])
            case "function_call":
                called = {"call_id": one["call_id"], "name": one["name"]}
                context.insert(llm.FunctionCall(**called, arguments="{}"))
            case "function_call_output":
                output = {"output": one["output"], "is_error": False}
                context.insert(llm.FunctionCallOutput(**called, **output))
    return context


async def restored() -> None:
    talk = Talk()
    await talk.begin(Clock(history()))
    await talk.session.generate_reply(user_input=SCRIPT["again"])
    told("restored", reply=talk.texts("assistant")[-1])
    await talk.end()


async def main() -> None:
    await conversation()
    await restored()


logging.basicConfig(level=logging.WARNING)
run(main())
