"""voiceloop: a real-time voice assistant that runs on one's own machine.

Programs may use the names in `__all__`; docs/api.md describes them. A name is imported when it is
first used, so `import voiceloop` alone loads nothing.
"""

TYPE_CHECKING = False  # True for type checkers; importing it from `typing` would take time
if TYPE_CHECKING:
    from voiceloop.api.asking import AnsweredTurn
    from voiceloop.api.loop import Loop
    from voiceloop.api.opening import open, run
    from voiceloop.api.talk import Talk, TalkEvent
    from voiceloop.audio.devices import Microphone, Speaker
    from voiceloop.engines import Asr, Llm, Tts, TurnModel, Vad
    from voiceloop.errors import VoiceloopError
    from voiceloop.settings.config import Config
    from voiceloop.tools.declared import tool
    from voiceloop.types import (
        Clause,
        FloorChange,
        Notice,
        TokenBurst,
        ToolCall,
        Transcript,
        TurnHeard,
    )
    from voiceloop.view.transcript import TurnOver

__version__ = "0.2.0"

__all__ = [
    "AnsweredTurn",
    "Asr",
    "Clause",
    "Config",
    "FloorChange",
    "Llm",
    "Loop",
    "Microphone",
    "Notice",
    "Speaker",
    "Talk",
    "TalkEvent",
    "TokenBurst",
    "ToolCall",
    "Transcript",
    "Tts",
    "TurnHeard",
    "TurnModel",
    "TurnOver",
    "Vad",
    "VoiceloopError",
    "__version__",
    "open",
    "run",
    "tool",
]

_HOMES = {
    "api.asking": ("AnsweredTurn",),
    "api.loop": ("Loop",),
    "api.opening": ("open", "run"),
    "api.talk": ("Talk", "TalkEvent"),
    "audio.devices": ("Microphone", "Speaker"),
    "settings.config": ("Config",),
    "engines": ("Asr", "Llm", "Tts", "TurnModel", "Vad"),
    "errors": ("VoiceloopError",),
    "tools.declared": ("tool",),
    "types": (
        *("Clause", "FloorChange", "Notice", "TokenBurst"),
        *("ToolCall", "Transcript", "TurnHeard"),
    ),
    "view.transcript": ("TurnOver",),
}
"""The names of `__all__` that each module of the package defines, e.g. `Loop` in `api.loop`."""


def __getattr__(name: str) -> object:
    """Import a name of `__all__` when it is first used."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"voiceloop.{module}"), name)
            return value
    raise AttributeError(f"module 'voiceloop' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of `__all__`, and those of modules that have been imported."""
    return sorted({*globals(), *__all__})
