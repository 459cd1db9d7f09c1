"""Runs functions of users on daemon threads. A program can end while such a thread still runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

T = TypeVar("T")


async def on_thread(function: Callable[[], T], name: str) -> T:
    """Call `function` on a new daemon thread called `name`, and return its result or raise its
    error.

    If the call is cancelled, the thread goes on, and its result is dropped. The threads of anyio
    are not used: a program waits for them at its end, and a function may never return.
    """
    done, token, context = anyio.Event(), current_token(), copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:  # SystemExit too, since it ends only this thread
            errors.append(error)
        with suppress(RuntimeError):  # the loop is closed
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=run, name=name, daemon=True).start()
    await done.wait()
    if errors:
        error = errors[0]
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return results[0]
