"""What a turn can be: values that are replaced, never changed.

Of a turn the user's side and the answer's are told apart. The user speaks, is silent, or has
ended; meanwhile the answer goes through the phases of `Phase`, of which docs/architecture.md has
the table. A turn is meant by its id wherever one is decided about; whoever watches knows it by its
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from voiceloop.config import TurnConfig
from voiceloop.languages import Language
from voiceloop.types import Outcome, ToolCall, Transcript

Returned = tuple[ToolCall, str]
"""A call of a tool, and what came back."""


class Phase(Enum):
    """How far the answer to a turn is; one that is done is kept no more."""

    HEARING = "hearing"
    """Nothing answers yet."""
    GUESSING = "guessing"
    """A reply runs that nobody sees or hears: the user may go on."""
    COMMITTED = "committed"
    """The user has finished: the reply may be seen and heard."""
    SPEAKING = "speaking"
    """The reply sounds."""
    CONTESTED = "contested"
    """The reply is paused: the user makes a sound, and may mean to interrupt it."""
    DROPPING = "dropping"
    """The guess was wrong; the reply's work has yet to come to its end."""
    STOPPING = "stopping"
    """The turn has been called off; its work has yet to come to its end."""


@dataclass(frozen=True, slots=True)
class Silence:
    """The user has stopped speaking."""

    since: int
    """The sample with which that began."""
    at: float
    """When that was."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What the user has said in a turn, as the recogniser has it."""

    newest: Transcript | None = None
    """The last transcript; final once every sample before the endpoint has been decoded."""
    guess: Transcript | None = None
    """While the user is silent: the transcript if the turn ends here, but for a last sound that may
    still be decoded."""
    hypothesis: str = ""
    """All words, settled or not."""

    @property
    def final(self) -> Transcript | None:
        """The transcript that nothing changes any more."""
        return self.newest if self.newest and self.newest.final else None

    @property
    def whole(self) -> Transcript | None:
        """What may be all that the user says."""
        return self.final or self.guess


NOTHING = TurnWords()
"""Nothing has been understood yet."""


@dataclass(frozen=True, slots=True)
class EndProbability:
    """How likely the language model finds that a turn ends after some words."""

    words: str
    probability: float | None
    """None where it cannot tell."""


@dataclass(frozen=True, slots=True)
class SoundJudgement:
    """How likely a turn is over by the sound of the voice before a silence."""

    since: int
    """The sample with which the silence began."""
    probability: float


@dataclass(frozen=True, slots=True)
class Options:
    """How a reply is to be."""

    spoken: bool = True
    """It sounds; otherwise it is written alone."""
    voice: str | None = None
    """In which it sounds; None: the synthesizer's own."""
    most_tokens: int | None = None
    """At most so many; None: what the model is set to."""
    client_tools: frozenset[str] = frozenset()
    """Tools that somebody else calls, who brings their results."""
    skills: bool = False
    """What a rule is sure of is answered by it; and what rings is told."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Whether a turn is to be answered, and how."""

    made: bool = True
    """It is, once the user has finished."""
    insisted: bool = False
    """Though the user may have begun to say something else."""
    options: Options | None = None
    """None: what holds for the conversation when the reply begins."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The newest attempt at an answer."""

    text: str
    """What the user said, to which it is one."""
    ahead: bool = False
    """It was begun while the user spoke."""
    doubted: bool = False
    """It answers what is probably not all that the user says."""


class Standing(Enum):
    """What has become of a contest."""

    UNDECIDED = "undecided"
    DISMISSED = "dismissed"
    """It was nothing to listen to; what follows may turn it into something."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Contest:
    """A turn that began while a reply could be heard, and may be an interruption."""

    rival: int
    """The turn whose reply that is."""
    since: float
    """When the reply was paused."""
    standing: Standing = Standing.UNDECIDED

    @property
    def undecided(self) -> bool:
        """The reply waits for the verdict."""
        return self.standing is Standing.UNDECIDED

    @property
    def dismissed(self) -> bool:
        """It was nothing to listen to, as far as is known: the reply has gone on."""
        return self.standing is Standing.DISMISSED

    @property
    def over(self) -> bool:
        """It will not be decided any more."""
        return self.standing is Standing.OVER


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of the user and the answer to it.

    Its fields are many, and flat, since each is another report's to change.
    """

    id: int
    """Its own."""
    number: int
    """What it is called by; the answer to tools that a client called for a turn is called as that
    turn is."""
    language: Language
    """What the user speaks, or seems to."""
    phase: Phase = Phase.HEARING
    detects: bool = False
    """Nobody knows for sure what the user speaks: each decode tells anew."""
    words: TurnWords = NOTHING
    silence: Silence | None = None
    """The one that there is; None while the user speaks, and where nobody does."""
    ended: bool = False
    """The user has finished: the endpoint has been decided."""
    resumes: bool = False
    """The user had only paused before it, though that ended a turn."""
    carried: str = ""
    """What the user said before, where they went on before it was answered."""
    returned: Sequence[Returned] = ()
    """What stands in for the user's words: results of the tools that the turn's reply called."""
    announces: str = ""
    """What is said in it although nobody asked for anything."""
    request: AnswerRequest = AnswerRequest()
    guesses: int = 0
    """Replies that may still be begun before the endpoint."""
    read: str = ""
    """What of it the language model has read."""
    hangover_ms: int | None = None
    """Silence that ends the turn; None while nobody knows."""
    end_probability: EndProbability | None = None
    sound: SoundJudgement | None = None
    reply: Attempt | None = None
    contest: Contest | None = None
    cut_off: bool = False
    """The user had not finished: what they said belongs to the next turn, and the reply is void."""
    outcome: Outcome | None = None
    """While it is being stopped: how it ends."""

    @property
    def text(self) -> str:
        """What the user has said, as far as it is settled."""
        whole = self.words.whole
        newest = self.words.newest.committed_text if self.words.newest else ""
        return f"{self.carried} {whole.text if whole else newest}".strip()

    @property
    def hypothesis(self) -> str:
        """What the user seems to have said by now, settled or not."""
        return f"{self.carried} {self.words.hypothesis}".strip()

    @property
    def asks(self) -> bool:
        """The user says something in it."""
        return not (self.returned or self.announces)

    @property
    def committed(self) -> bool:
        """A reply is there to be heard; one that is only a guess is not."""
        return self.phase in (Phase.COMMITTED, Phase.SPEAKING, Phase.CONTESTED)

    @property
    def uncontested(self) -> bool:
        """It is listened to: it interrupts nothing, or has done so."""
        return self.contest is None or self.contest.over

    @property
    def dismissed(self) -> bool:
        """What was said was nothing to listen to."""
        return self.contest is not None and self.contest.dismissed


@dataclass(frozen=True, slots=True)
class ReplyProgress:
    """What has been played of the newest reply."""

    turn: int = -1
    words: Sequence[str] = ()
    """Those that sounded to their end."""
    first_sound: float | None = None
    """When its first audible sample sounded."""
    said_a_clause: bool = False
    """Its first clause has sounded to its end."""


@dataclass(frozen=True, slots=True)
class DialogueSettings:
    """How a conversation is conducted; a client may change it at any time."""

    policy: TurnConfig
    """How turns are found and ended."""
    language: Language
    """What the user speaks; `AUTO` until a turn of theirs tells."""
    answers: bool = True
    """A turn is answered when it ends; otherwise somebody asks for that."""
    interruptible: bool = True
    """A sound of the user's pauses the reply, and may end it."""
    thinks: bool = True
    """The language model reads and replies; otherwise a turn is over with its words."""
    reply: Options = Options()
