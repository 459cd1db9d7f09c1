"""Errors of voices, which all engines word in the same way."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from voiceloop.errors import (
    ConfigError,
    ModelCorrupt,
    OutOfMemory,
    VoiceloopError,
    tells_of_no_memory,
)
from voiceloop.settings.schema import suggestion


def require(voice: str, known: Collection[str], engine: str, kind: str = "voice") -> None:
    """Raise ConfigError if `voice` is not `known`. It names the nearest voice of the `engine`."""
    if voice not in known:
        hint = suggestion(voice, known)
        raise ConfigError(f"{engine} has no {kind} called '{voice}'", hint)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise ModelCorrupt if the voice `name` cannot be used while the context lasts, and
    OutOfMemory if it does not fit. Errors of voiceloop's own stay what they are."""
    try:
        yield
    except VoiceloopError:
        raise
    except Exception as error:  # onnxruntime, torch and the voices' libraries raise bare errors
        if tells_of_no_memory(error):
            raise OutOfMemory(
                f"the voice '{name}' does not fit into memory", "choose a smaller one"
            ) from error
        raise corrupt(name, first_line(error)) from error


def corrupt(name: str, why: str) -> ModelCorrupt:
    """Return the error for a voice whose files are damaged."""
    return ModelCorrupt(f"the voice '{name}' cannot be used: {why}", "download or copy it again")


def first_line(error: BaseException) -> str:
    """Return the first line of what `error` says; the name of its type if it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
