"""What the core is told, and what it asks for: two small vocabularies of frozen values.

Every stage that reports has a word or two, and so have clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voiceloop.dialogue.state import NOTHING, Options, Played, Returned, Settings, Words
from voiceloop.turns import SpeechStarted, TurnEvent
from voiceloop.types import Event, Outcome

# ---- what the core is told


@dataclass(frozen=True, slots=True)
class Heard:
    """The detector has found that the user begins, pauses, goes on or has ended."""

    event: TurnEvent
    at: float
    """When the sample was recorded with which that happened."""
    words: Words = NOTHING
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
    words: Words
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
class Rewritten:
    """The language model sees another history."""

    rewrite: object
    """As it was asked for."""


@dataclass(frozen=True, slots=True)
class Sounding:
    """The reply begins to sound."""

    turn: int


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
class Closed:
    """The record of a turn that is over has been told, with all that followed from that."""

    turn: int


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
class Respond:
    """Answer the newest turn that is over."""

    options: Options | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the reply that is being thought or heard."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Before anything else is read, the language model is to see another history."""

    rewrite: object


@dataclass(frozen=True, slots=True)
class Forget:
    """The turn that is being heard has never been."""


@dataclass(frozen=True, slots=True)
class Change:
    """The conversation is conducted in another way from now on."""

    settings: Settings


Input = (
    Heard
    | Frame
    | Recognised
    | LanguageDetected
    | SoundJudged
    | Read
    | Rewritten
    | Sounding
    | Played
    | Replied
    | Failed
    | Stopped
    | Closed
    | Write
    | BringResults
    | Respond
    | Cancel
    | Rewrite
    | Forget
    | Change
)

# ---- what the core asks for


@dataclass(frozen=True, slots=True)
class Begin:
    """A turn has begun."""

    turn: int
    number: int
    started: SpeechStarted | None
    """Recognise what is said from there on; None: nobody speaks in it."""


@dataclass(frozen=True, slots=True)
class EndAfter:
    """So much silence ends the turn that is being heard."""

    turn: int
    silence_ms: int


@dataclass(frozen=True, slots=True)
class JudgeSound:
    """Judge by its sound whether a turn is over; the silence began with `since`."""

    turn: int
    since: int


@dataclass(frozen=True, slots=True)
class ReadWords:
    """Have the language model read what the user has said; `weigh` asks how likely they end so."""

    turn: int
    text: str
    weigh: bool = False
    may_answer: bool = False
    """If they are likely to end so, they are answered before they have."""


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
class Pause:
    """Pause the reply, which may be heard: the user makes a sound."""

    turn: int


@dataclass(frozen=True, slots=True)
class Resume:
    """It was no interruption: the reply goes on from the sample at which it was paused."""

    turn: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Call off all work of a turn, and what sounds of it if it is `heard`."""

    turn: int
    heard: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn is over: cut its history to what was heard of the reply, and close its record."""

    turn: int
    outcome: Outcome
    forgotten: bool = False
    """Nothing of the reply stays: it answered half of what the user said."""


@dataclass(frozen=True, slots=True)
class Show:
    """Tell whoever watches."""

    event: Event


@dataclass(frozen=True, slots=True)
class Record:
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

    turn: int
    number: int


@dataclass(frozen=True, slots=True)
class HoldMicrophone:
    """The microphone hears nothing while a reply may sound."""


@dataclass(frozen=True, slots=True)
class ReleaseMicrophone:
    """It hears again."""


Action = (
    Begin
    | EndAfter
    | JudgeSound
    | ReadWords
    | RewriteHistory
    | StartReply
    | Commit
    | Drop
    | Hesitate
    | Pause
    | Resume
    | Stop
    | Finish
    | Show
    | Record
    | Count
    | Answering
    | HoldMicrophone
    | ReleaseMicrophone
)
