"""The actions that the core requests, which the session carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voiceloop.asr.turns import SpeechStarted
from voiceloop.dialogue.state import Announcement, Options, Returned
from voiceloop.types import Event, Outcome, ToolCall


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin the work of a turn."""

    turn: int
    number: int
    started: SpeechStarted | None
    """Where the speech to recognise begins; None if nobody speaks in the turn."""


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the turn that is being heard at the silence that was reported last, and report its
    `TurnEnded` with the words known so far."""


@dataclass(frozen=True, slots=True)
class JudgeSound:
    """Have the turn model judge whether a turn is over. The silence began at sample `since`."""

    turn: int
    since: int


@dataclass(frozen=True, slots=True)
class ReadWords:
    """Have the language model read the user's words, and report the probability that the turn ends
    after them."""

    turn: int
    text: str
    options: Options
    """Options of the reply that will follow."""


@dataclass(frozen=True, slots=True)
class ReadOpening:
    """Have the language model read the history before the next turn, while nobody speaks."""

    number: int
    """Number of the next turn."""
    rewrite: int | None
    """Number of another history that the model must take first; None to keep its own."""


@dataclass(frozen=True, slots=True)
class LeaveOpening:
    """Stop reading the history before the next turn, because it has been replaced."""


@dataclass(frozen=True, slots=True)
class RewriteHistory:
    """Replace the language model's history, before it reads anything of a turn."""

    turn: int
    rewrite: int
    """Number of the new history."""


@dataclass(frozen=True, slots=True)
class StartReply:
    """Begin a reply behind the gate: nothing of it leaves before `Commit`."""

    turn: int
    text: str
    options: Options
    revises: bool = False
    """Whether an earlier reply, to fewer words, is the draft of this one."""
    returned: Sequence[Returned] = ()
    language: str = ""
    """Code of the language that the user speaks."""
    announces: Announcement | None = None
    """What is said instead of a reply; None for a reply."""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Run a tool of voiceloop's or of the user's own."""

    turn: int
    call: ToolCall
    agreed: bool = True
    """False if the user must agree first and has not. Then the model is told to ask them."""


@dataclass(frozen=True, slots=True)
class BringResult:
    """Give a reply the result of a tool that it called."""

    turn: int
    call: ToolCall
    result: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Let the reply be seen and heard."""

    turn: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop the reply, because it was begun on a wrong guess."""

    turn: int


@dataclass(frozen=True, slots=True)
class Hesitate:
    """Pause thinking for `seconds` or until `Commit`, because the guess is probably wrong."""

    turn: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PauseReply:
    """Pause the reply, because the user makes a sound."""

    turn: int


@dataclass(frozen=True, slots=True)
class ResumeReply:
    """Resume the reply at the sample at which it was paused, because the sound was no
    interruption."""

    turn: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop all work of a turn and, if `audible`, the sound that plays."""

    turn: int
    audible: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """Close a turn that is over: cut its history to what was heard of the reply, close its record,
    and report `Settled`."""

    turn: int
    outcome: Outcome
    forgotten: bool = False
    """Whether nothing of the reply stays in the history, because it answered only a part of what
    the user said."""


@dataclass(frozen=True, slots=True)
class Show:
    """Show an event to the user or client."""

    event: Event


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Record a decision in the trace of a turn: its name, the time since which it was open, and the
    facts on which it was based."""

    turn: int
    name: str
    since: float
    facts: Mapping[str, float | str] = field(default_factory=dict[str, float | str])


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to a counter of the turn's record."""

    turn: int
    counter: str


@dataclass(frozen=True, slots=True)
class Answering:
    """Tell a client the number of the turn whose reply it has requested or stopped."""

    number: int


@dataclass(frozen=True, slots=True)
class HoldMicrophone:
    """Stop the microphone from hearing while a reply may sound."""


@dataclass(frozen=True, slots=True)
class ReleaseMicrophone:
    """Let the microphone hear again."""


ModelWork = ReadOpening | ReadWords | RewriteHistory | StartReply
"""Work of the language model, which does one thing at a time."""

ForModel = ModelWork | LeaveOpening
ForTurn = Begin | EndTurn | JudgeSound | CallTool | Stop | Finish
ForReply = Commit | Drop | Hesitate | PauseReply | ResumeReply | BringResult
ForOthers = Show | RecordDecision | Count | Answering | HoldMicrophone | ReleaseMicrophone
Action = ForTurn | ForModel | ForReply | ForOthers
