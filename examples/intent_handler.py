"""A program of one's own replies in place of a language model: `python intent_handler.py x.wav`."""

import asyncio
import sys
from collections.abc import Iterator, Sequence

import voiceloop
from voiceloop.llm.chat import ChatLlm
from voiceloop.llm.text.messages import Message

lights = {"kitchen": False, "hall": False}


def handle(words: str) -> str:
    """Do what the words ask for, and return the answer."""
    for room in lights:
        if f"{room} light" in words:
            lights[room] = "off" not in words.split()
            return f"The {room} light is {'on' if lights[room] else 'off'}."
    return "I only know about the lights."


class Home(ChatLlm):
    name = "home"
    metered = True  # no reply begins on a guess: that would switch a light too soon

    def reply(self, messages: Sequence[Message], tools: Sequence[object]) -> Iterator[str]:
        yield handle(messages[-1]["content"].lower())


async def main(recording: str) -> None:
    async with voiceloop.open(preset="starter", llm={"engine": Home}) as loop:
        turn = await loop.ask(recording)
        print(turn.said, "->", turn.reply)


asyncio.run(main(sys.argv[1]))
