"""The inputs of the core: reports of stages, and requests of clients and timers.

They are plain data, so that they can be recorded, and given to the core once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceloop.asr.turns import TurnEvent
from voiceloop.dialogue.state import NOTHING, Options, ReplyProgress, Returned, TurnWords
from voiceloop.settings.config import TurnConfig
from voiceloop.types import ToolCall


@dataclass(frozen=True, slots=True)
class Detected:
    """The speech detector has found that the user begins, pauses, is silent, goes on or has
    finished."""

    event: TurnEvent
    at: float
    """When the user began or fell silent, in seconds of the loop's clock. For other events, when
    they were found."""
    words: TurnWords = NOTHING
    """What the user has said, as far as it is known at that time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The microphone has given another frame, so time has passed."""

    end: int
    """Index in the stream of the sample after the frame's last."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A decode has shown what the user has said so far."""

    turn: int
    words: TurnWords
    sure: bool = False
    """Whether the decode was final, gave words, and is sure of the language."""


@dataclass(frozen=True, slots=True)
class LanguageDetected:
    """A decode has detected the language that the user speaks."""

    turn: int
    code: str


@dataclass(frozen=True, slots=True)
class SoundJudged:
    """The turn model's probability that a turn is over, judged by the sound before the silence that
    began at sample `since`."""

    turn: int
    since: int
    probability: float


@dataclass(frozen=True, slots=True)
class Read:
    """The language model has read `text`, the user's words so far. This is reported after a
    `ReadWords`, and when the first output of a reply is there."""

    turn: int
    text: str
    probability: float | None
    """Probability that the turn ends after `text`; None if the model cannot tell."""
    begun: float
    """When the reading began, in seconds of the loop's clock."""
    exchanges: int = 0
    """Number of exchanges before this turn."""


@dataclass(frozen=True, slots=True)
class OpeningRead:
    """The language model has read the history before the next turn, or has stopped reading it."""

    rewritten: int | None = None
    """Number of the new history that the model has read. None if the history was not replaced, or
    if the reading was stopped."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The language model has taken another history."""

    rewritten: int
    """Number of the new history."""


@dataclass(frozen=True, slots=True)
class Sounding:
    """A clause of the reply begins to sound."""

    turn: int


@dataclass(frozen=True, slots=True)
class ToolsCalled:
    """The model has called tools, and waits for the results of those that voiceloop runs."""

    turn: int
    calls: Sequence[ToolCall]


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool of the user's own has returned its result to the reply that called it."""

    turn: int
    call: ToolCall
    result: str


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply has been said to its end, or was dropped as requested."""

    turn: int
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A stage has failed in a turn. Nothing of the turn runs any more."""

    turn: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """All work of a turn that was to be stopped has ended."""

    turn: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The session runs, and every turn that was to be finished has been closed: its history is cut
    to what was heard, and its record has been shown."""


@dataclass(frozen=True, slots=True)
class Write:
    """The user has written `text`. It becomes a new turn."""

    text: str
    options: Options | None = None


@dataclass(frozen=True, slots=True)
class BringResults:
    """A client has brought the results of tools that a reply called. A continuation of the reply's
    turn begins with them."""

    returned: Sequence[Returned]
    options: Options | None = None


@dataclass(frozen=True, slots=True)
class Rang:
    """A timer is over."""

    text: str
    """Text that the user is to be told."""


@dataclass(frozen=True, slots=True)
class Announce:
    """A text is to be said that is no answer. It comes from a program, or the user wants to hear
    the last reply again."""

    text: str


@dataclass(frozen=True, slots=True)
class Respond:
    """A client requests an answer to the newest turn that is over."""

    options: Options | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client ends the reply that is being thought or heard."""

    number: int | None = None
    """Number of the turn whose reply is ended; None to end the reply to any turn."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A client replaces the history. The language model takes it before it reads anything else."""

    rewrite: int
    """Number of the new history. A later history has a higher number."""


@dataclass(frozen=True, slots=True)
class Forget:
    """The turn that is being heard is discarded, as if it had never begun."""


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The settings of the conversation change. Those that are None stay as they are."""

    policy: TurnConfig | None = None
    language: str | None = None
    """Code of the language that the user speaks."""
    answers: bool | None = None
    interruptible: bool | None = None
    thinks: bool | None = None
    reply: Options | None = None


FromUser = Detected | Frame | Recognised | LanguageDetected | SoundJudged
FromModel = Read | OpeningRead | Rewritten
FromReply = Sounding | ToolsCalled | ToolReturned | Replied | Failed | Stopped
FromClient = (
    Write | BringResults | Rang | Announce | Respond | Cancel | Rewrite | Forget | SettingsChanged
)
Input = FromUser | FromModel | FromReply | FromClient | ReplyProgress | Settled
