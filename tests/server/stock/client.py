"""A conversation by the stock `openai` client for Python, unmodified, in an environment of its own.

    client.py URL SPEECH OUT

SPEECH is a folder of questions as PCM16 at 24 kHz; what is answered is written to OUT. Prints one
JSON object: what happened in each step.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path

from openai import AsyncOpenAI

STEP = 960
TOOL = {"type": "function", "name": "get_time", "description": "The time.", "parameters": {}}


async def main(url: str, speech: Path) -> tuple[dict[str, object], bytes]:
    client = AsyncOpenAI(websocket_base_url=url)
    found: dict[str, object] = {}
    async with client.realtime.connect(model="voiceloop") as connection:

        async def until(kind: str, audio: bytearray | None = None):
            async for event in connection:
                if event.type == "error":
                    raise RuntimeError(event.error.message)
                if event.type == "response.output_audio.delta" and audio is not None:
                    audio += base64.b64decode(event.delta)
                if event.type == kind:
                    return event
            raise RuntimeError(f"the connection ended before {kind}")

        async def say(name: str) -> None:
            pcm = (speech / name).read_bytes() + bytes(48_000)
            for at in range(0, len(pcm), STEP):
                audio = base64.b64encode(pcm[at : at + STEP]).decode()
                await connection.input_audio_buffer.append(audio=audio)
                await asyncio.sleep(0.02)

        async def write(text: str) -> None:
            content = [{"type": "input_text", "text": text}]
            item = {"type": "message", "role": "user", "content": content}
            await connection.conversation.item.create(item=item)
            await connection.response.create()

        created = await until("session.created")
        found["session"] = created.session.type
        transcription = {"model": "whisper-1"}
        detection = {"type": "semantic_vad"}
        settings = {"input": {"transcription": transcription, "turn_detection": detection}}
        await connection.session.update(session={"type": "realtime", "audio": settings})
        updated = await until("session.updated")
        found["detection"] = updated.session.audio.input.turn_detection.type

        # A spoken question, and a spoken answer.
        speaking = asyncio.create_task(say("capital.pcm"))
        said = await until("conversation.item.input_audio_transcription.completed")
        found["heard"] = said.transcript
        audio = bytearray()
        done = await until("response.done", audio)
        found["answer"] = done.response.output[0].content[0].transcript
        await speaking

        # Interrupt an answer by speaking; then truncate what was played of it.
        await write("Why is the sky blue?")
        begun = await until("response.output_audio.delta")
        await asyncio.sleep(0.5)
        speaking = asyncio.create_task(say("capital.pcm"))
        done = await until("response.done")
        found["interrupted"] = done.response.status_details.reason
        await connection.conversation.item.truncate(
            item_id=begun.item_id, content_index=0, audio_end_ms=400
        )
        found["truncated"] = (await until("conversation.item.truncated")).audio_end_ms
        done = await until("response.done")
        found["after"] = done.response.output[0].content[0].transcript
        await speaking

        # A function of the client's.
        await connection.session.update(session={"type": "realtime", "tools": [TOOL]})
        await until("session.updated")
        await write("What time is it?")
        call = await until("response.function_call_arguments.done")
        await until("response.done")
        found["called"] = call.name
        output = json.dumps({"time": "7:42 PM", "day": "Monday", "date": "June 1"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        await connection.conversation.item.create(item=result)
        await connection.response.create()
        done = await until("response.done")
        found["told"] = done.response.output[0].content[0].transcript
    return found, bytes(audio)


told, answer = asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
Path(sys.argv[3]).write_bytes(answer)
print(json.dumps(told))
