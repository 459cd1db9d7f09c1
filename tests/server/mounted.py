"""A site of somebody's own with the server mounted in it; its options are in the environment."""

from __future__ import annotations

import os
import shlex

from fastapi import FastAPI

from voiceloop.server.asgi import VARIABLE, Application

voice = Application.of(*shlex.split(os.environ.get(VARIABLE, "")))
site = FastAPI(lifespan=lambda _: voice.open())
site.mount("/", voice)
