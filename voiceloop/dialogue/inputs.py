"""What the core is told: every stage that reports has a word or two, and so have clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from voiceloop.asr.turns import TurnEvent
from voiceloop.config import TurnConfig
from voiceloop.dialogue.state import NOTHING, Options, ReplyProgress, Returned, TurnWords
from voiceloop.languages import Language
from voiceloop.types import ToolCall


@dataclass(frozen=True, slots=True)
class Detected:
    """The detector has found that the user begins, pauses, is silent, goes on or has ended."""

    event: TurnEvent
    at: float
    """When the sample was recorded with which that happened."""
    words: TurnWords = NOTHING
    """What the user has said, as far as it is known with this."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The microphone has heard more: time goes on."""

    end: int
    """Index of the sample after the last."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A decode has come: what the user has said by now."""

    turn: int
    words: TurnWords
    sure: bool = False
    """There are some, it was the best decode, and it is sure of the language."""


@dataclass(frozen=True, slots=True)
class LanguageDetected:
    """A decode found what the user speaks."""

    turn: int
    code: str


@dataclass(frozen=True, slots=True)
class SoundJudged:
    """How likely a turn is over by the sound before the silence that began with `since`."""

    turn: int
    since: int
    probability: float


@dataclass(frozen=True, slots=True)
class Read:
    """The language model has read what it was asked to, or the first thing that it says in reply
    is there, so that it has read all before that."""

    turn: int
    text: str
    probability: float | None
    """Of the turn ending there; None where it cannot tell."""
    begun: float
    """When it was asked to."""
    exchanges: int = 0
    """What had been asked and answered before."""


@dataclass(frozen=True, slots=True)
class OpeningRead:
    """The language model has read what stands before the next turn, or left that."""

    rewritten: object | None = None
    """The history that it sees now, as it was asked for."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The language model sees another history."""

    rewritten: object
    """As it was asked for."""


@dataclass(frozen=True, slots=True)
class Sounding:
    """The reply begins to sound."""

    turn: int


@dataclass(frozen=True, slots=True)
class ToolsCalled:
    """The model has called tools, and thinks no further until those of ours have returned."""

    turn: int
    calls: Sequence[ToolCall]


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply has been said to its end, or was dropped, as was asked."""

    turn: int
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A stage broke in a turn; nothing of it runs any more."""

    turn: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing of a turn that was to be stopped runs any more."""

    turn: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The session runs, and every turn that was to be finished has been closed: its history is cut
    to what was heard, and whoever watches has been told."""


@dataclass(frozen=True, slots=True)
class Write:
    """The user has written `text`: a turn of its own."""

    text: str
    options: Options | None = None


@dataclass(frozen=True, slots=True)
class BringResults:
    """What one reply called somebody else's tools for has come: go on with its turn."""

    returned: Sequence[Returned]
    options: Options | None = None


@dataclass(frozen=True, slots=True)
class Rang:
    """A timer is over."""

    text: str
    """What the user is to be told."""


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer the newest turn that is over."""

    options: Options | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the reply that is being thought or heard."""

    number: int | None = None
    """Where it is that to the turn of this number."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Before anything else is read, the language model is to see another history."""

    rewrite: object


@dataclass(frozen=True, slots=True)
class Forget:
    """The turn that is being heard has never been."""


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The conversation is conducted in another way from now on; what is None stays as it is."""

    policy: TurnConfig | None = None
    language: Language | None = None
    answers: bool | None = None
    interruptible: bool | None = None
    thinks: bool | None = None
    reply: Options | None = None


FromUser = Detected | Frame | Recognised | LanguageDetected | SoundJudged
FromModel = Read | OpeningRead | Rewritten
FromReply = Sounding | ToolsCalled | Replied | Failed | Stopped
FromClient = Write | BringResults | Rang | Respond | Cancel | Rewrite | Forget | SettingsChanged
Input = FromUser | FromModel | FromReply | FromClient | ReplyProgress | Settled
Reports = AsyncGenerator[Input, None]
"""What a stage or a job yields: each is told before it goes on, and all that follows is done."""
