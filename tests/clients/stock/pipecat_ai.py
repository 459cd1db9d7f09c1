"""Pipecat: its Realtime service in a pipeline, with aggregators and an output transport.

What is heard is queued as a transport would push it; the output transport plays to nobody.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    InputAudioRawFrame,
    InterruptionWorkerFrame,
    LLMMessagesAppendFrame,
    LLMRunFrame,
    OutputAudioRawFrame,
    StartFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner
from steps import PATIENCE_S, RATE, SCRIPT, URL, Microphone, run, told, until

PAUSE_S = 0.3


class Speaker(BaseOutputTransport):
    """An output that takes as long as the sound does."""

    def __init__(self) -> None:
        super().__init__(TransportParams(audio_out_enabled=True, audio_out_sample_rate=RATE))
        self.played_s = 0.0
        self._over = 0.0

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        seconds, now = len(frame.audio) / (2 * RATE), time.monotonic()
        # What follows at once makes up for late wake-ups; after a pause it begins anew.
        self._over = (self._over if now < self._over + PAUSE_S else now) + seconds
        await asyncio.sleep(self._over - now)
        self.played_s += seconds
        return True


class Talk:
    """A pipeline that runs, and what came out of it."""

    def __init__(self, instructions: str, messages: list[dict]) -> None:
        self.called: list[str] = []
        self.heard: list[str] = []
        self.replies: list[str] = []
        self.items: list[events.ConversationItem] = []
        self.errors: list[str] = []
        self.microphone, self.speaker = Microphone(), Speaker()

        async def get_time(params: FunctionCallParams) -> None:
            """The time."""
            self.called.append(params.function_name)
            await params.result_callback(json.loads(SCRIPT["tool_output"]))

        transcription = events.InputAudioTranscription()
        self.llm = OpenAIRealtimeLLMService(
            api_key="none",
            base_url=URL.replace("http", "ws", 1) + "/v1/realtime",
            settings=OpenAIRealtimeLLMService.Settings(
                system_instruction=instructions,
                session_properties=events.SessionProperties(
                    audio=events.AudioConfiguration(
                        input=events.AudioInput(transcription=transcription)
                    )
                ),
            ),
        )
        self.context = LLMContext(messages, tools=[get_time])
        user, assistant = LLMContextAggregatorPair(self.context)
        pipeline = Pipeline([user, self.llm, self.speaker, assistant])
        params = PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE)
        self.worker = PipelineWorker(pipeline, params=params)

        @user.event_handler("on_user_turn_message_added")
        async def _(aggregator, message) -> None:
            self.heard.append(message.content)

        @assistant.event_handler("on_assistant_turn_stopped")
        async def _(aggregator, message) -> None:
            self.replies.append(message.content)

        @self.llm.event_handler("on_conversation_item_created")
        async def _(service, item_id, item) -> None:
            self.items.append(item)

        @self.worker.event_handler("on_pipeline_error")
        async def _(worker, frame: ErrorFrame) -> None:
            print(f"pipecat: {frame.error}", file=sys.stderr)

    async def begin(self) -> None:
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self.worker)
        self.running = asyncio.create_task(runner.run())
        self.hearing = asyncio.create_task(self.hear())

    async def end(self) -> None:
        self.hearing.cancel()
        await self.worker.cancel()
        await self.running

    async def hear(self) -> None:
        while True:
            frame = InputAudioRawFrame(await self.microphone.frame(), RATE, 1)
            await self.worker.queue_frame(frame)

    async def write(self, text: str) -> None:
        """Append a message, and have it answered; the user's aggregator would keep it to itself."""
        message = {"role": "user", "content": text}
        await self.llm.queue_frame(LLMMessagesAppendFrame([message], run_llm=True))

    async def reply(self, since: int) -> str:
        await until(lambda: any(self.replies[since:]))
        return next(filter(None, self.replies[since:]))

    async def turn(self, kind: str) -> dict:
        """What came back in one turn."""
        since = len(self.replies)
        match kind:
            case "greeting":
                await self.worker.queue_frame(LLMRunFrame())
                return {"reply": await self.reply(since)}
            case "spoken":
                self.microphone.say("capital.pcm")
                reply = await self.reply(since)
                return {"heard": self.heard[-1], "reply": reply}
            case "typed":
                await self.write(SCRIPT["typed"])
                return {"reply": await self.reply(since)}
            case "tool":
                self.called.clear()
                await self.write(SCRIPT["tool"])
                return {"reply": await self.reply(since), "called": self.called}
            case "interrupted":
                return await self.cut(lambda: self.microphone.say("capital.pcm"), follow=True)
            case _:
                interruption = InterruptionWorkerFrame()
                return await self.cut(lambda: self.worker.queue_frame(interruption), follow=False)

    async def cut(self, stop: Callable[[], object], *, follow: bool) -> dict:
        """Interrupt a story while it sounds."""
        since, played = len(self.replies), self.speaker.played_s
        await self.write(SCRIPT["story"])
        await until(lambda: self.speaker.played_s > played + SCRIPT["interrupt_after_s"])
        story = [item for item in self.items if item.role == "assistant"][-1]
        result = stop()
        if asyncio.iscoroutine(result):
            await result
        await self.reply(since)
        came = {"reply": await self.reply(since + 1)} if follow else {}
        async with asyncio.timeout(PATIENCE_S):
            [part] = (await self.llm.retrieve_conversation_item(story.id)).content
        return {"kept": part.transcript, **came}


async def conversation() -> None:
    talk = Talk(f"{SCRIPT['instructions']} {SCRIPT['greeting']}", [])
    await talk.begin()
    for kind in SCRIPT["turns"]:
        told(kind, **await talk.turn(kind))
    await talk.end()


def history() -> list[dict]:
    found: list[dict] = []
    for one in SCRIPT["history"]:
        match one["type"]:
            case "message":
                found.append({"role": one["role"], "content": one["text"]})
            case "function_call":
                function = {"name": one["name"], "arguments": "{}"}
                call = {"id": one["call_id"], "type": "function", "function": function}
                found.append({"role": "assistant", "tool_calls": [call]})
            case _:
                result = {"tool_call_id": one["call_id"], "content": one["output"]}
                found.append({"role": "tool", **result})
    return found


async def restored() -> None:
    """Pipecat packs a former conversation into one message of the user's."""
    talk = Talk(SCRIPT["instructions"], [*history(), {"role": "user", "content": SCRIPT["again"]}])
    await talk.begin()
    await talk.worker.queue_frame(LLMRunFrame())
    reply = await talk.reply(0)
    item = next(item for item in talk.items if item.role == "user")
    told("restored", reply=reply, packed=item.content[0].text)
    await talk.end()


async def main() -> None:
    await conversation()
    await restored()


logger.remove()
logger.add(sys.stderr, level="WARNING")
run(main())
