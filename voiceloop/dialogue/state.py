"""The state of a turn: values that are replaced, never changed.

The state of the user and the state of the answer are kept apart. The user speaks, is silent, or has
finished. Meanwhile the answer goes through the phases of `Phase`; docs/architecture.md has their
table. The core refers to a turn by its id. Users and clients know the turn by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from voiceloop.languages import Language
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Outcome, ToolCall, Transcript

Returned = tuple[ToolCall, str]
"""A tool call and its result."""


class Phase(Enum):
    """The progress of the answer to a turn. A turn that is over has no phase, because it is removed
    from the state."""

    HEARING = "hearing"
    """No reply runs yet."""
    GUESSING = "guessing"
    """A reply runs that nobody sees or hears, because the user may go on."""
    COMMITTED = "committed"
    """The user has finished, and the reply may be seen and heard."""
    SPEAKING = "speaking"
    """The reply sounds."""
    CONTESTED = "contested"
    """The reply is paused, because the user makes a sound and may mean to interrupt it."""
    DROPPING = "dropping"
    """The guess was wrong, and the work of the reply has not ended yet."""
    STOPPING = "stopping"
    """The turn has been stopped, and its work has not ended yet."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A silence of the user."""

    since: int
    """Sample at which the silence began."""
    at: float
    """When the silence began, in seconds of the loop's clock."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What the user has said in a turn, as the recogniser has it."""

    newest: Transcript | None = None
    """Newest transcript. It is final once every sample before the endpoint has been decoded."""
    guess: Transcript | None = None
    """Transcript for the case that the turn ends in the present silence; a last sound may still be
    missing. None while the user speaks, and until it is known."""
    hypothesis: str = ""
    """All words of the newest decode, also those that may still change."""

    @property
    def final(self) -> Transcript | None:
        """The final transcript, which nothing changes any more; None until it is known."""
        return self.newest if self.newest and self.newest.final else None

    @property
    def whole(self) -> Transcript | None:
        """The final transcript or else `guess`: what may be all that the user says. None if neither
        is known."""
        return self.final or self.guess


NOTHING = TurnWords()
"""The words of a turn before anything has been understood."""


@dataclass(frozen=True, slots=True)
class EndProbability:
    """The language model's probability that a turn ends after `words`."""

    words: str
    probability: float | None
    """Probability, or None if the model cannot tell."""


@dataclass(frozen=True, slots=True)
class SoundJudgement:
    """The turn model's probability that a turn is over, judged by the sound before a silence."""

    since: int
    """Sample at which the silence began."""
    probability: float


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a reply."""

    spoken: bool = True
    """Whether the reply is spoken; otherwise it is only written."""
    voice: str | None = None
    """Name of the voice; None for the configured one."""
    most_tokens: int | None = None
    """Maximum number of tokens of the reply; None for the model's own limit."""
    client_tools: frozenset[str] = frozenset()
    """Names of the tools that a client runs, and whose results it brings."""
    skills: bool = False
    """Whether skills answer the questions that they understand in full, and timers are
    announced."""
    own_tools: bool = True
    """Whether the model may call the tools of the user's own."""
    parallel_calls: bool = True
    """Whether the model may call several tools at once."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Whether a turn is to be answered, and how."""

    made: bool = True
    """Whether the turn is to be answered once the user has finished."""
    insisted: bool = False
    """Whether the turn is answered even if the user has begun to say something else."""
    options: Options | None = None
    """Options of the reply; None for those that the conversation has when the reply begins."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A text that is said although the user has asked nothing."""

    text: str
    insists: bool
    """Whether the text is said again if it was interrupted before any of it was heard."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The newest attempt to answer a turn."""

    text: str
    """The user's words that the attempt answers."""
    ahead: bool = False
    """Whether the attempt began while the user spoke."""
    doubted: bool = False
    """Whether the user will probably say more than `text`."""


class Standing(Enum):
    """The state of a contest."""

    UNDECIDED = "undecided"
    DISMISSED = "dismissed"
    """The sound was judged to be no interruption; later sound may change that."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Contest:
    """The contest between a turn and the reply that could be heard when the turn began. The turn
    may interrupt the reply."""

    rival: int
    """Id of the turn whose reply is contested."""
    since: float
    """When the reply was paused, in seconds of the loop's clock."""
    standing: Standing = Standing.UNDECIDED

    @property
    def undecided(self) -> bool:
        """Whether the reply waits for the verdict."""
        return self.standing is Standing.UNDECIDED

    @property
    def dismissed(self) -> bool:
        """Whether the sound was judged to be no interruption, so that the reply went on."""
        return self.standing is Standing.DISMISSED

    @property
    def over(self) -> bool:
        """Whether the contest will not be decided any more."""
        return self.standing is Standing.OVER


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of the user and the answer to it.

    Its fields are many and flat, because each is changed by a different report.
    """

    id: int
    """Id of the turn, which no other turn of the conversation has."""
    number: int
    """Number by which users and clients know the turn. The continuation of a turn after a client's
    tool results has the same number as that turn."""
    language: Language
    """Language that the user speaks, or seems to speak."""
    phase: Phase = Phase.HEARING
    detects: bool = False
    """Whether the language is not known for sure, so that each decode detects it anew."""
    words: TurnWords = NOTHING
    silence: Silence | None = None
    """Present silence; None while the user speaks, and if nobody speaks in the turn."""
    ended: bool = False
    """Whether the user has finished: the endpoint has been decided."""
    resumes: bool = False
    """Whether the turn began very soon after the user fell silent in an earlier turn. Then they had
    only paused."""
    beside: bool = False
    """Whether the turn began while a reply sounded or shortly after it, so that its sound may be an
    echo of the reply."""
    carried: str = ""
    """What the user said in an earlier turn, if they went on before it was answered."""
    returned: Sequence[Returned] = ()
    """Results of the tools that the turn's reply called. They stand in for the user's words."""
    announces: Announcement | None = None
    """What is said in the turn instead of an answer; None if the user or a client asks."""
    request: AnswerRequest = AnswerRequest()
    guesses: int = 0
    """Number of replies that may still begin before the endpoint."""
    read: str = ""
    """Words of the turn that the language model has read."""
    ends_after_ms: int | None = None
    """Milliseconds of silence that end the turn; None while they are not known."""
    end_probability: EndProbability | None = None
    sound: SoundJudgement | None = None
    reply: Attempt | None = None
    contest: Contest | None = None
    cut_off: bool = False
    """Whether the user had not finished when the turn ended. Then their words belong to the next
    turn, and the reply is void."""
    outcome: Outcome | None = None
    """How the turn ends, while it is being stopped; otherwise None."""

    @property
    def text(self) -> str:
        """The words of `carried`, then what the user has said: the words of `words.whole`, or only
        the committed ones while that is None."""
        whole = self.words.whole
        newest = self.words.newest.committed_text if self.words.newest else ""
        return f"{self.carried} {whole.text if whole else newest}".strip()

    @property
    def hypothesis(self) -> str:
        """The words of `carried`, then all words of the newest decode, also those that may still
        change."""
        return f"{self.carried} {self.words.hypothesis}".strip()

    @property
    def asks(self) -> bool:
        """Whether the user says something in the turn."""
        return not (self.returned or self.announces)

    @property
    def committed(self) -> bool:
        """Whether the turn's reply may be heard. A reply that is only a guess may not."""
        return self.phase in (Phase.COMMITTED, Phase.SPEAKING, Phase.CONTESTED)

    @property
    def uncontested(self) -> bool:
        """Whether the turn contests no reply: it never did, or its contest is over."""
        return self.contest is None or self.contest.over

    @property
    def dismissed(self) -> bool:
        """Whether the turn's sound was judged to be no interruption of a reply."""
        return self.contest is not None and self.contest.dismissed


@dataclass(frozen=True, slots=True)
class ReplyProgress:
    """How much of the newest reply has been played."""

    turn: int = -1
    words: Sequence[str] = ()
    """Words that have sounded to their end."""
    first_sound: float | None = None
    """When the first audible sample of the reply sounded, in seconds of the loop's clock; None
    before that."""
    said_a_clause: bool = False
    """Whether the first clause of the reply has sounded to its end."""
    until: float = 0.0
    """When the audio that was handed to the speaker so far will have sounded, in seconds of the
    loop's clock."""


@dataclass(frozen=True, slots=True)
class DialogueSettings:
    """The settings of a conversation. A client may change them at any time."""

    policy: TurnConfig
    """Settings by which turns are found and ended."""
    language: Language
    """Language that the user speaks; `AUTO` until one of their turns has shown it."""
    answers: bool = True
    """Whether a turn is answered when it ends; otherwise only if a client requests it."""
    interruptible: bool = True
    """Whether a sound of the user pauses the reply, and may end it."""
    thinks: bool = True
    """Whether the language model reads and replies; otherwise a turn is over once its words are
    known."""
    reply: Options = Options()
