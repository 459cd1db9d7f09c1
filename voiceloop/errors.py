"""What can go wrong, as one tree.

    VoiceloopError(message, hint)
    ├── ConfigError            an unknown key, preset or value
    ├── AudioError             a file or stream that holds no usable audio
    ├── DeviceError            a microphone or speaker that cannot be opened, or has gone
    ├── EngineError            a model or synthesizer that cannot be used
    │   ├── MissingExtra       a package that an engine needs is not installed
    │   ├── ModelNotFound      no model under that name or folder
    │   ├── ModelCorrupt       the files are there but damaged or of the wrong kind
    │   └── OutOfMemory        the model does not fit
    └── ProtocolError          a peer said something that the wire does not allow

A user meets each of these as one line and a hint, without a traceback, and exit status 2. Anything
else that escapes is a defect of voiceloop.
"""

from __future__ import annotations


class VoiceloopError(Exception):
    """An error a user can act on: `message` says what happened, `hint` what to do about it."""

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
        super().__init__(
            f"{engine} is not installed", f"install it with: pip install 'voiceloop[{extra}]'"
        )


class ModelNotFound(EngineError):
    """No model under that name or folder."""


class ModelCorrupt(EngineError):
    """Model files that are damaged or of the wrong kind."""


class OutOfMemory(EngineError):
    """A model that does not fit into the memory of its device."""


class ProtocolError(VoiceloopError):
    """A peer said something that the wire does not allow."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: str = "invalid_value",
        param: str | None = None,
        event_id: str | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.code = code
        """What kind of mistake, as OpenAI's API calls it: `missing_required_parameter`."""
        self.param = param
        """The parameter at fault: `session.audio.input.turn_detection.threshold`."""
        self.event_id = event_id
        """The peer's own id of its event, where it gave one."""
