"""OpenAI's Agents SDK for Python: a RealtimeRunner with its websocket model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agents import function_tool
from agents.realtime import (
    RealtimeAgent,
    RealtimeModelSendRawMessage,
    RealtimePlaybackTracker,
    RealtimeRunner,
)
from steps import RATE, SCRIPT, URL, Microphone, run, told, until

called: list[str] = []


@function_tool
def get_time() -> str:
    """The time."""
    called.append("get_time")
    return SCRIPT["tool_output"]


class Talk:
    """A session, and what it has told."""

    def __init__(self, session, tracker: RealtimePlaybackTracker) -> None:
        self.session, self.tracker = session, tracker
        self.microphone = Microphone()
        self.events: list[dict] = []
        self.history: list = []
        self.played_s = 0.0

    async def hear(self) -> None:
        while True:
            await self.session.send_audio(await self.microphone.frame())

    async def listen(self) -> None:
        async for event in self.session:
            match event.type:
                case "audio":
                    # It comes as fast as it sounds.
                    data = event.audio.data
                    self.tracker.on_play_bytes(event.item_id, event.content_index, data)
                    self.played_s += len(data) / (2 * RATE)
                case "history_updated":
                    self.history = event.history
                case "history_added":
                    self.history = [*self.history, event.item]
                case "error":
                    self.events.append({"type": "error", "error": event.error})
                case "raw_model_event" if event.data.type == "raw_server_event":
                    self.events.append(event.data.data)

    def all(self, kind: str, since: int = 0) -> list[dict]:
        return [event for event in self.events[since:] if event["type"] == kind]

    def retrieved(self, item_id: str, since: int) -> list[dict]:
        """What has come of an item; the SDK itself retrieves others."""
        found = [one["item"] for one in self.all("conversation.item.retrieved", since)]
        return [item for item in found if item["id"] == item_id]

    async def send(self, kind: str, **fields: object) -> None:
        message = {"type": kind, "other_data": fields}
        await self.session.model.send_event(RealtimeModelSendRawMessage(message=message))

    async def reply(self, since: int, count: int = 1) -> str:
        """What the history has at the end of that many responses."""
        await until(lambda: len(self.all("response.done", since)) >= count)
        await until(lambda: self.last("assistant"))
        return self.last("assistant")

    def last(self, role: str) -> str:
        found = [one for one in self.history if one.type == "message" and one.role == role]
        return (
            "".join(
                getattr(p, "transcript", None) or getattr(p, "text", None) or ""
                for p in found[-1].content
            )
            if found
            else ""
        )

    async def turn(self, kind: str) -> dict:
        """What came back in one turn."""
        since = len(self.events)
        match kind:
            case "greeting":
                await self.send("response.create", response={"instructions": SCRIPT["greeting"]})
                return {"reply": await self.reply(since)}
            case "spoken":
                self.microphone.say("capital.pcm")
                reply = await self.reply(since)
                return {"heard": self.last("user"), "reply": reply}
            case "typed":
                await self.session.send_message(SCRIPT["typed"])
                return {"reply": await self.reply(since)}
            case "tool":
                called.clear()
                await self.session.send_message(SCRIPT["tool"])
                return {"reply": await self.reply(since, 2), "called": called}
            case "interrupted":
                return await self.cut(lambda: self.microphone.say("capital.pcm"), follow=True)
            case _:
                return await self.cut(self.session.interrupt, follow=False)

    async def cut(self, stop: Callable[[], object], *, follow: bool) -> dict:
        """Interrupt a story while it sounds."""
        since, played = len(self.events), self.played_s
        await self.session.send_message(SCRIPT["story"])
        await until(lambda: self.played_s > played + SCRIPT["interrupt_after_s"])
        story = self.all("response.output_audio.delta", since)[-1]["item_id"]
        result = stop()
        if asyncio.iscoroutine(result):
            await result
        await self.reply(since)
        came = {"reply": await self.reply(since, 2)} if follow else {}
        await until(lambda: self.all("conversation.item.truncated", since))
        cut_ms = self.all("conversation.item.truncated", since)[0]["audio_end_ms"]
        since = len(self.events)
        await self.send("conversation.item.retrieve", item_id=story)
        await until(lambda: self.retrieved(story, since))
        [part] = self.retrieved(story, since)[0]["content"]
        return {"cut_ms": cut_ms, "kept": part["transcript"], **came}


async def session(work) -> None:
    agent = RealtimeAgent(name="Clock", instructions=SCRIPT["instructions"], tools=[get_time])
    tracker = RealtimePlaybackTracker()
    url = URL.replace("http", "ws", 1) + "/v1/realtime?model=voiceloop"
    config = {"api_key": "none", "url": url, "playback_tracker": tracker}
    async with await RealtimeRunner(agent).run(model_config=config) as running:
        talk = Talk(running, tracker)
        tasks = [asyncio.create_task(talk.hear()), asyncio.create_task(talk.listen())]
        await work(talk)
        for task in tasks:
            task.cancel()


async def conversation(talk: Talk) -> None:
    for kind in SCRIPT["turns"]:
        told(kind, **await talk.turn(kind))


async def restored(talk: Talk) -> None:
    """The SDK sends no history of its own accord: its items are sent as messages of the model."""
    for one in SCRIPT["history"]:
        item = dict(one)
        match item["type"]:
            case "message":
                kind = "output_text" if item["role"] == "assistant" else "input_text"
                item["content"] = [{"type": kind, "text": item.pop("text")}]
            case "function_call":
                item["arguments"] = "{}"
            case _:
                del item["name"]
        await talk.send("conversation.item.create", item=item)
    since = len(talk.events)
    await talk.session.send_message(SCRIPT["again"])
    told("restored", reply=await talk.reply(since))


async def main() -> None:
    await session(conversation)
    await session(restored)


run(main())
