"""A FastAPI application with the assistant below /voice/.

pip install fastapi
uvicorn fastapi_app:app --port 8000 --ws voiceloop.server.paced:PacedWebSocket
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import voiceloop


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with voiceloop.open(preset="starter") as loop:
        loop.mount(app, "/voice", port=8000)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def home() -> dict[str, str]:
    return {"talk": "/voice/"}
