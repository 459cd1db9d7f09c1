"""The state of one conversation, as the core knows it. Only the functions of this folder change
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voiceloop.asr.turns import SilenceLasts
from voiceloop.dialogue.actions import Action, JudgeSound, ModelWork
from voiceloop.dialogue.state import DialogueSettings, Options, ReplyProgress, Turn
from voiceloop.languages import Language
from voiceloop.types import Calibration

ToolAndArguments = tuple[str, str]
"""Name of a tool, and its arguments as JSON with sorted keys."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a session: what its models can do, and which work it does early."""

    prefills: bool = True
    """Whether the language model reads the user's words while they speak."""
    recognises: bool = True
    """Whether the user's words are recognised before the turn has ended."""
    guesses: int = 6
    """Maximum number of replies to a turn that may begin before its end."""
    full_duplex: bool = True
    """Whether the microphone hears while a reply sounds."""
    turn_model_ms: int | None = None
    """Milliseconds of silence after which the turn model can judge the sound of a voice; None if
    there is no such model."""


@dataclass(slots=True, eq=False)
class ConversationState:
    """All turns that are not over, what the language model does, and who has the floor.

    Its fields are many and flat, because each is changed by a different report.
    """

    settings: DialogueSettings
    abilities: Abilities
    calibrations: Mapping[str, Calibration | None]
    """What the language model's probabilities mean, by the language's code."""

    turns: tuple[Turn, ...] = ()
    """Turns that are not over. The language model works on them in this order."""
    begun: int = 0
    """Number of turns so far, continuations of earlier turns included. It is the id of the newest
    turn."""
    numbered: int = 0
    """Number of the newest turn. Turns are numbered from 1; a continuation has the number of the
    turn that it continues."""
    last_answered: int | None = None
    """Id of the turn to which a reply was begun last; None if there was no reply."""

    listening: int | None = None
    """Id of the turn of the user that is being heard; None between turns."""
    heard_to: int = 0
    """Number of samples heard so far: the index of the next one."""
    silence: SilenceLasts | None = None
    """Newest report of the present silence in the turn that is being heard; None if there is no
    silence, and once the turn has been ended."""
    ending: bool = False
    """Whether the end of the turn that is being heard has been requested, but not yet reported."""
    judging: JudgeSound | None = None
    """Silence that the turn model is judging; None if it judges none."""
    fell_silent: float | None = None
    """When the user last fell silent at the end of a turn with words, in seconds of the loop's
    clock. None before the end of the first turn with words."""

    model: ModelWork | None = None
    """What the language model is doing; None if it is idle."""
    unread: bool = field(init=False)
    """Whether the model has yet to read the history before the next turn."""
    rewrite: int | None = None
    """Number of the new history that the model must take before it reads anything else; None if the
    history has not been replaced."""
    settled: bool = False
    """Whether the session runs and all turns that are over have been closed, so that the language
    model may begin something."""
    played: ReplyProgress = field(default_factory=ReplyProgress)
    asking: tuple[int, ToolAndArguments] | None = None
    """Call about which a reply asks now, after the id of its turn; None while no reply asks."""
    asked: ToolAndArguments | None = None
    """Call of the last question, once it was said to its end; None once the user has answered."""
    asked_at: int = 0
    """Id of the newest turn when that question had been said. Earlier turns are no answer to it."""
    agreed: ToolAndArguments | None = None
    """Call to which the user has consented in the turn that is being answered."""
    declined: ToolAndArguments | None = None
    """Call to which the user has not consented in that turn, though they were asked."""

    now: float = 0.0
    """When the newest report came, in seconds of the loop's clock."""
    requested: list[Action] = field(default_factory=list[Action])
    """Actions requested since the newest report, in order."""

    def __post_init__(self) -> None:
        self.unread = self.abilities.prefills

    @property
    def contested(self) -> bool:
        """Whether the user and a reply contest the floor now. As long as this is so, decisions
        depend on how much of the reply has been played."""
        contests = (turn.contest for turn in self.turns)
        return any(contest and not contest.over for contest in contests)

    def turn(self, turn_id: int | None) -> Turn | None:
        """Return a turn by its id, or None if it is over."""
        return next((turn for turn in self.turns if turn.id == turn_id), None)

    def options(self, turn_id: int) -> Options:
        """Return the options of the reply to a turn that is not over."""
        turn = self.turn(turn_id)
        assert turn is not None, "it is not over"
        return turn.request.options or self.settings.reply

    def add(self, number: int, language: Language, **known: Any) -> Turn:
        """Begin a turn, with the fields `known`, and return it.

        The new turn goes to the end of the queue. There are two exceptions, since turns whose reply
        was not requested yet may wait for ever. A turn in which the user says nothing goes before
        the first of them. A turn that is to be answered alone goes before one that is still heard.
        """
        turn, turns = Turn(self.begun + 1, number, language, **known), self.turns
        alone, at = turn.request.insisted, len(turns)
        for place, other in reversed(list(enumerate(turns))):
            if not other.request.made and (not turn.asks or (alone and not other.ended)):
                at = place
        self.turns = (*turns[:at], turn, *turns[at:])
        self.begun = turn.id
        self.unread = False  # the model reads the whole history with the turn's words
        return turn

    def next_number(self) -> int:
        """Count a new turn, and return its number. A continuation is not counted."""
        self.numbered += 1
        return self.numbered

    def change(self, turn_id: int, **changed: Any) -> None:
        """Replace fields of a turn. A turn that is over stays as it was."""
        self.turns = tuple(
            replace(turn, **changed) if turn.id == turn_id else turn for turn in self.turns
        )

    def ask(self, action: Action) -> None:
        """Request an action, after those that are requested already."""
        self.requested.append(action)
