"""What the core asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voiceloop.asr.turns import SpeechStarted
from voiceloop.dialogue.state import Options, Returned
from voiceloop.types import Event, Outcome, ToolCall


@dataclass(frozen=True, slots=True)
class Begin:
    """A turn has begun."""

    turn: int
    number: int
    started: SpeechStarted | None
    """Recognise what is said from there on; None: nobody speaks in it."""


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn that is being heard is over with the silence that was reported last: report its
    `TurnEnded`, with what is known of its words."""


@dataclass(frozen=True, slots=True)
class JudgeSound:
    """Judge by its sound whether a turn is over; the silence began with `since`."""

    turn: int
    since: int


@dataclass(frozen=True, slots=True)
class ReadWords:
    """Have the language model read what the user has said, and tell how likely they end so."""

    turn: int
    text: str
    options: Options
    """How the reply will be."""


@dataclass(frozen=True, slots=True)
class ReadOpening:
    """Have the language model read what stands before the next turn, while nobody says anything."""

    number: int
    """The next turn's."""
    rewrite: object | None
    """Another history, which it is to see first."""


@dataclass(frozen=True, slots=True)
class LeaveOpening:
    """What stands before the next turn is another by now: do not read on."""


@dataclass(frozen=True, slots=True)
class RewriteHistory:
    """Have the language model see another history, before it reads anything of a turn."""

    turn: int
    rewrite: object


@dataclass(frozen=True, slots=True)
class StartReply:
    """Begin a reply behind the gate: nothing of it leaves before `Commit`."""

    turn: int
    text: str
    options: Options
    revises: bool = False
    """A reply to less was begun before: it is the draft of this one."""
    returned: Sequence[Returned] = ()
    language: str = ""
    """Code of what the user speaks."""
    announces: str = ""
    """What is said instead of a reply."""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool of ours."""

    turn: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Commit:
    """The reply may be seen and heard."""

    turn: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The reply was begun on a wrong guess."""

    turn: int


@dataclass(frozen=True, slots=True)
class Hesitate:
    """Think no further for so long, or until `Commit`: the guess is probably wrong."""

    turn: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PauseReply:
    """Pause the reply, which may be heard: the user makes a sound."""

    turn: int


@dataclass(frozen=True, slots=True)
class ResumeReply:
    """It was no interruption: the reply goes on from the sample at which it was paused."""

    turn: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Call off all work of a turn, and with it what sounds, if it is `audible`."""

    turn: int
    audible: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn is over: cut its history to what was heard of the reply, close its record, and
    report `Settled`."""

    turn: int
    outcome: Outcome
    forgotten: bool = False
    """Nothing of the reply stays: it answered half of what the user said."""


@dataclass(frozen=True, slots=True)
class Show:
    """Tell whoever watches."""

    event: Event


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """A decision for the turn's record: since when it was open, and what it was founded on."""

    turn: int
    name: str
    since: float
    facts: Mapping[str, float | str] = field(default_factory=dict[str, float | str])


@dataclass(frozen=True, slots=True)
class Count:
    """Something for the turn's record that is counted."""

    turn: int
    counter: str


@dataclass(frozen=True, slots=True)
class Answering:
    """A turn is answered, or its reply stopped, because a client asked for that."""

    number: int


@dataclass(frozen=True, slots=True)
class HoldMicrophone:
    """The microphone hears nothing while a reply may sound."""


@dataclass(frozen=True, slots=True)
class ReleaseMicrophone:
    """It hears again."""


ModelWork = ReadOpening | ReadWords | RewriteHistory | StartReply
"""What the language model does; one thing after the other."""

ForModel = ModelWork | LeaveOpening
ForTurn = Begin | EndTurn | JudgeSound | CallTool | Stop | Finish
ForReply = Commit | Drop | Hesitate | PauseReply | ResumeReply
ForOthers = Show | RecordDecision | Count | Answering | HoldMicrophone | ReleaseMicrophone
Action = ForTurn | ForModel | ForReply | ForOthers
