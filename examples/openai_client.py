"""Ask `voiceloop serve` a question with OpenAI's own package.

    pip install 'openai[realtime]'
    python openai_client.py

Install it where voiceloop is not: its extra wants an older version of the package websockets.
"""

import asyncio

from openai import AsyncOpenAI


async def main():
    client = AsyncOpenAI(websocket_base_url="ws://localhost:8765/v1", api_key="none")
    async with client.realtime.connect(model="voiceloop") as connection:
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "What time is it?"}],
            }
        )
        await connection.response.create()
        async for event in connection:
            print(event.type)  # response.output_audio.delta has sound
            if event.type == "response.done":
                break


asyncio.run(main())
