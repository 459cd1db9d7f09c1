"""The inputs of the core: reports of stages, and requests of clients and timers.

They are plain data, so that they can be recorded, and given to the core once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from voiceloop.asr.turns import TurnEvent
from voiceloop.dialogue.state import NOTHING, Options, ReplyProgress, Returned, TurnWords
from voiceloop.settings.config import TurnConfig
from voiceloop.types import ToolCall


class Detected(Struct, frozen=True):
    """The speech detector has found that the user begins, pauses, is silent, goes on or has
    finished."""

    event: TurnEvent
    at: float
    """When the user began or fell silent, in seconds of the loop's clock. For other events, when
    they were found."""
    words: TurnWords = NOTHING
    """What the user has said, as far as it is known at that time."""


class Frame(Struct, frozen=True):
    """The microphone has given another frame, so time has passed."""

    end: int
    """Index in the stream of the sample after the frame's last."""


class Recognised(Struct, frozen=True):
    """A decode has shown what the user has said so far."""

    turn: int
    words: TurnWords
    sure: bool = False
    """Whether the decode was final, gave words, and is sure of the language."""


class LanguageDetected(Struct, frozen=True):
    """A decode has detected the language that the user speaks."""

    turn: int
    code: str


class SoundJudged(Struct, frozen=True):
    """The turn model's probability that a turn is over, judged by the sound before the silence that
    began at sample `since`."""

    turn: int
    since: int
    probability: float


class Read(Struct, frozen=True):
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


class OpeningRead(Struct, frozen=True):
    """The language model has read the history before the next turn, or has stopped reading it."""

    rewritten: int | None = None
    """Number of the new history that the model has read. None if the history was not replaced, or
    if the reading was stopped."""


class Rewritten(Struct, frozen=True):
    """The language model has taken another history."""

    rewritten: int
    """Number of the new history."""


class Sounding(Struct, frozen=True):
    """A clause of the reply begins to sound."""

    turn: int


class ToolsCalled(Struct, frozen=True):
    """The model has called tools, and waits for the results of those that voiceloop runs."""

    turn: int
    calls: Sequence[ToolCall]


class ToolReturned(Struct, frozen=True):
    """A tool of the user's own has returned its result to the reply that called it."""

    turn: int
    call: ToolCall
    result: str


class Replied(Struct, frozen=True):
    """The reply has been said to its end, or was dropped as requested."""

    turn: int
    dropped: bool = False


class Failed(Struct, frozen=True):
    """A stage has failed in a turn. Nothing of the turn runs any more."""

    turn: int


class Stopped(Struct, frozen=True):
    """All work of a turn that was to be stopped has ended."""

    turn: int


class Settled(Struct, frozen=True):
    """The session runs, and every turn that was to be finished has been closed: its history is cut
    to what was heard, and its record has been shown."""


class Write(Struct, frozen=True):
    """The user has written `text`. It becomes a new turn."""

    text: str
    options: Options | None = None


class BringResults(Struct, frozen=True):
    """A client has brought the results of tools that a reply called. A continuation of the reply's
    turn begins with them."""

    returned: Sequence[Returned]
    options: Options | None = None


class Rang(Struct, frozen=True):
    """A timer is over."""

    text: str
    """Text that the user is to be told."""


class Announce(Struct, frozen=True):
    """A text is to be said that is no answer. It comes from a program, or the user wants to hear
    the last reply again."""

    text: str


class Respond(Struct, frozen=True):
    """A client requests an answer to the newest turn that is over."""

    options: Options | None = None


class Cancel(Struct, frozen=True):
    """A client ends the reply that is being thought or heard."""

    number: int | None = None
    """Number of the turn whose reply is ended; None to end the reply to any turn."""


class Rewrite(Struct, frozen=True):
    """A client replaces the history. The language model takes it before it reads anything else."""

    rewrite: int
    """Number of the new history. A later history has a higher number."""


class Forget(Struct, frozen=True):
    """The turn that is being heard is discarded, as if it had never begun."""


class SettingsChanged(Struct, frozen=True):
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
