"""The errors that a user can act on, as one tree of classes.

    VoiceloopError(message, hint)
    ├── ConfigError            an unknown key, preset or value
    ├── AudioError             a file or stream that holds no usable audio
    ├── DeviceError            a microphone or speaker that cannot be opened, or has gone
    ├── EngineError            a model or synthesizer that cannot be used
    │   ├── MissingExtra       a package that an engine needs is not installed
    │   ├── ModelNotFound      no model under that name or folder
    │   ├── ModelCorrupt       the files are there but damaged or of the wrong kind
    │   └── OutOfMemory        the model does not fit
    └── ProtocolError          a peer sent something that the protocol does not allow

The command line prints each of these as one line and a hint, without a traceback, and exits with
status 2. Any other exception that reaches the user is a defect of voiceloop.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Literal, cast

from voiceloop import __version__

Code = Literal[
    "conversation_already_has_active_response",
    "input_audio_buffer_commit_empty",
    "invalid_json",
    "invalid_type",
    "invalid_value",
    "item_create_duplicate_item_id",
    "item_create_invalid_previous_item_id",
    "item_delete_invalid_item_id",
    "item_in_progress",
    "item_retrieve_invalid_item_id",
    "item_truncate_invalid_item_id",
    "missing_required_parameter",
    "not_permitted",
    "nothing_to_respond_to",
    "rate_limit_exceeded",
    "response_cancel_not_active",
    "resume_failed",
    "unknown_parameter",
    "unsupported_event",
    "unsupported_parameter",
]
"""The codes of error events: OpenAI's code where its API has one for the error."""


class VoiceloopError(Exception):
    """An error that a user can act on: `message` says what happened, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(VoiceloopError):
    """An unknown key, preset or value in the configuration."""


class AudioError(VoiceloopError):
    """A file or stream that holds no usable audio."""


class DeviceError(VoiceloopError):
    """A microphone or speaker that cannot be opened, or has gone."""


class EngineError(VoiceloopError):
    """A model or synthesizer that cannot be used."""


class MissingExtra(EngineError):
    """An engine whose packages are not installed."""

    def __init__(self, engine: str, extra: str) -> None:
        how = f"in the checkout: .venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
        if Path(__file__).with_name("_bundled").is_dir():  # installed from a wheel
            wheel = f"voiceloop-{__version__}-py3-none-any.whl"
            how = f"install voiceloop again as '{wheel}[{extra}]'"
        super().__init__(f"{engine} is not installed", how)


class MissingPack(EngineError):
    """A setting whose package is not installed."""

    def __init__(self, setting: str, pack: str) -> None:
        """`pack` is the package's folder in `packs/` of a checkout."""
        how = f"in the checkout: .venv/bin/pip install --no-deps ./packs/{pack}"
        super().__init__(f"{setting} needs the package voiceloop-{pack}", how)


class ModelNotFound(EngineError):
    """No model under that name or folder."""


class ModelCorrupt(EngineError):
    """Model files that are damaged or of the wrong kind."""


class OutOfMemory(EngineError):
    """A model that does not fit into the memory of its device."""


_NO_MEMORY = (
    *("allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED"),
    *("bad_alloc", "failed to map segment", "start new thread", "without exception set"),
)
"""Parts of the messages of errors that mean "out of memory" but have no type of their own.

They come from the CPU's allocator, Metal, cuBLAS, libraries that cannot be loaded, and threads
without room for their stack.
"""


def first_cause(error: Exception) -> Exception:
    """Return the first exception in the group `error`, or `error` itself if it is no group.

    Task groups of anyio raise such groups, which may be nested.
    """
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error


def tells_of_no_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out, by its type or its message."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError | ImportError | SystemError)
        and any(sign in str(error) for sign in _NO_MEMORY)
    )


class ProtocolError(VoiceloopError):
    """A message of a peer that the protocol does not allow."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: Code = "invalid_value",
        param: str | None = None,
        event_id: str | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.code: Code = code
        """The code of the error event."""
        self.param = param
        """The parameter at fault, such as `session.audio.input.turn_detection.threshold`."""
        self.event_id = event_id
        """The id that the peer gave its event, if any."""
