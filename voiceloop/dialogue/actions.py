"""The actions that the core requests and the session carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from voiceloop.asr.turns import SpeechStarted
from voiceloop.dialogue.state import Announcement, Options, Returned
from voiceloop.types import Event, Outcome, ToolCall

Verdict = Literal["run", "ask", "later", "declined", "too long"]
"""What becomes of a call of a tool: it runs; the user is asked first; another question comes first;
the user did not agree; it is too long to ask about."""


class Begin(Struct, frozen=True):
    """Begin the work of a turn."""

    turn: int
    number: int
    started: SpeechStarted | None
    """Where the speech to recognise begins; None if nobody speaks in the turn."""


class EndTurn(Struct, frozen=True):
    """End the turn that is being heard, because the present silence is long enough. Report its
    `TurnEnded`, with the words known so far."""


class JudgeSound(Struct, frozen=True):
    """Have the turn model judge whether a turn is over. The silence began at sample `since`."""

    turn: int
    since: int


class ReadWords(Struct, frozen=True):
    """Have the language model read the user's words, and report the probability that the turn ends
    after them."""

    turn: int
    text: str
    options: Options
    """Options of the reply that will follow."""


class ReadOpening(Struct, frozen=True):
    """Have the language model read the history before the next turn, while nobody speaks."""

    number: int
    """Number of the next turn."""
    rewrite: int | None
    """Number of the new history that replaces the model's before it reads; None if the history has
    not been replaced."""


class LeaveOpening(Struct, frozen=True):
    """Stop reading the history before the next turn, because it has been replaced."""


class RewriteHistory(Struct, frozen=True):
    """Replace the language model's history, before it reads anything of a turn."""

    turn: int
    rewrite: int
    """Number of the new history."""


class StartReply(Struct, frozen=True):
    """Begin a reply behind the gate: nothing of it leaves before `Commit`."""

    turn: int
    text: str
    options: Options
    revises: bool = False
    """Whether the turn's earlier reply, which was dropped, becomes the draft of this one."""
    returned: Sequence[Returned] = ()
    language: str = ""
    """Code of the language that the user speaks."""
    announces: Announcement | None = None
    """Text to say instead of a reply from the model; None if the model replies."""


class CallTool(Struct, frozen=True):
    """Run a tool, either one of voiceloop's or one of the user's."""

    turn: int
    call: ToolCall
    verdict: Verdict = "run"
    question: str = ""
    """Question to the user with which the reply ends if the verdict is `ask`."""


class BringResult(Struct, frozen=True):
    """Give a reply the result of a tool that it called."""

    turn: int
    call: ToolCall
    result: str


class Commit(Struct, frozen=True):
    """Let the reply be seen and heard."""

    turn: int


class Drop(Struct, frozen=True):
    """Drop the reply, because it was begun on a wrong guess."""

    turn: int


class Hesitate(Struct, frozen=True):
    """Pause thinking for `seconds` or until `Commit`, because the guess is probably wrong."""

    turn: int
    seconds: float


class PauseReply(Struct, frozen=True):
    """Pause the reply, because the user makes a sound."""

    turn: int


class ResumeReply(Struct, frozen=True):
    """Resume the reply at the sample at which it was paused, because the user's sound was no
    interruption."""

    turn: int


class Stop(Struct, frozen=True):
    """Stop all work of a turn and, if `audible`, the sound that plays."""

    turn: int
    audible: bool = False


class Finish(Struct, frozen=True):
    """Close a turn that is over: cut its history to what was heard of the reply, close its record,
    and report `Settled`."""

    turn: int
    outcome: Outcome
    forgotten: bool = False
    """Whether the whole reply is removed from the history, because it answered only a part of what
    the user said."""


class Show(Struct, frozen=True):
    """Show an event to the user or client."""

    event: Event


class RecordDecision(Struct, frozen=True):
    """Record a decision in the trace of a turn, with its name and the facts on which it was based.
    It is recorded as a span from the time `since` until now."""

    turn: int
    name: str
    since: float
    facts: Mapping[str, float | str] = {}


class Count(Struct, frozen=True):
    """Add one to a counter of the turn's record."""

    turn: int
    counter: str


class Answering(Struct, frozen=True):
    """Tell a client the number of a turn. The client has begun the turn, or it has requested or
    stopped the reply to the turn."""

    number: int


class HoldMicrophone(Struct, frozen=True):
    """Stop the microphone from hearing while a reply may sound."""


class ReleaseMicrophone(Struct, frozen=True):
    """Let the microphone hear again."""


ModelWork = ReadOpening | ReadWords | RewriteHistory | StartReply
"""Work of the language model, which does one thing at a time."""

ForModel = ModelWork | LeaveOpening
ForTurn = Begin | EndTurn | JudgeSound | CallTool | Stop | Finish
ForReply = Commit | Drop | Hesitate | PauseReply | ResumeReply | BringResult
ForOthers = Show | RecordDecision | Count | Answering | HoldMicrophone | ReleaseMicrophone
Action = ForTurn | ForModel | ForReply | ForOthers
