"""What the core knows of one conversation. The functions of this folder change it, and nothing else
does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voiceloop.asr.turns import SilenceLasts
from voiceloop.dialogue.actions import Action, JudgeSound, ModelWork
from voiceloop.dialogue.state import DialogueSettings, Options, ReplyProgress, Turn
from voiceloop.languages import Language
from voiceloop.types import Calibration


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a session can do, and what it leaves out."""

    prefills: bool = True
    """The language model reads the user's words while they speak."""
    recognises: bool = True
    """There are words before the turn has ended."""
    guesses: int = 6
    """Replies to a turn that may be begun before its end."""
    full_duplex: bool = True
    """It hears while a reply sounds."""
    turn_model_ms: int | None = None
    """Silence after which the turn model can judge the sound of a voice; None: there is no such
    model."""


@dataclass(slots=True, eq=False)
class ConversationState:
    """All turns that are not over, what the language model does, and who has the floor.

    Its fields are many, and flat, since each is another report's to change.
    """

    settings: DialogueSettings
    abilities: Abilities
    calibrations: Mapping[str, Calibration | None]
    """What the language model's probabilities mean, by language."""

    turns: tuple[Turn, ...] = ()
    """In the order in which they began; the first is the one that the language model works on."""
    begun: int = 0
    """Turns so far."""
    numbered: int = 0
    """Turns of the user so far."""
    last_answered: int | None = None
    """The turn that a reply was begun to last."""

    listening: int | None = None
    """The turn of the user that is listened to."""
    heard_to: int = 0
    """Index of the sample after the last that was heard."""
    silence: SilenceLasts | None = None
    """The silence that there is by now in the turn that is listened to."""
    ending: bool = False
    """That turn is over, and what was said up to its end is about to be reported."""
    judging: JudgeSound | None = None
    """The silence that the turn model judges."""
    fell_silent: float | None = None
    """When the user had last said something that is to be listened to."""

    model: ModelWork | None = None
    """What the language model does; it does one thing after the other."""
    unread: bool = field(init=False)
    """The model has not seen what stands before the next turn."""
    rewrite: object | None = None
    """Another history, which the model is to see before it reads anything else."""
    settled: bool = False
    """The session runs, and all turns that are over have been closed: the language model may begin
    something."""
    played: ReplyProgress = field(default_factory=ReplyProgress)

    now: float = 0.0
    """When the newest report came."""
    asked: list[Action] = field(default_factory=list[Action])
    """What is to be done because of it, in order."""

    def __post_init__(self) -> None:
        self.unread = self.abilities.prefills

    @property
    def contested(self) -> bool:
        """It depends on what has been played of a reply what becomes of it."""
        contests = (turn.contest for turn in self.turns)
        return any(contest and not contest.over for contest in contests)

    def turn(self, turn_id: int | None) -> Turn | None:
        """A turn that is not over, by its id."""
        return next((turn for turn in self.turns if turn.id == turn_id), None)

    def options(self, turn_id: int) -> Options:
        """How the reply to a turn that is not over is to be."""
        turn = self.turn(turn_id)
        assert turn is not None, "it is not over"
        return turn.request.options or self.settings.reply

    def add(self, number: int, language: Language, **known: Any) -> Turn:
        """Begin the newest turn. One in which the user says nothing does not wait behind turns
        that nobody has asked to be answered."""
        turn, turns = Turn(self.begun + 1, number, language, **known), self.turns
        waiting = [at for at, other in enumerate(turns) if not other.request.made]
        at = waiting[0] if waiting and not turn.asks else len(turns)
        self.turns = (*turns[:at], turn, *turns[at:])
        self.begun = turn.id
        self.unread = False  # after the turn the model will have seen all that was before it
        return turn

    def next_number(self) -> int:
        """Count another turn of the user: its number."""
        self.numbered += 1
        return self.numbered

    def change(self, turn_id: int, **changed: Any) -> None:
        """A turn is another from now on; one that is over stays as it was."""
        self.turns = tuple(
            replace(turn, **changed) if turn.id == turn_id else turn for turn in self.turns
        )

    def ask(self, action: Action) -> None:
        """Ask for something, after what is asked for already."""
        self.asked.append(action)
