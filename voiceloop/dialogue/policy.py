"""When a turn ends, and who gets the floor: rules over what is known of a turn.

The numbers behind them are in `endpoint` and `bargein`; what is done about an answer is `core`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from voiceloop.calibration.probability import bare, comparable
from voiceloop.config import TurnConfig
from voiceloop.dialogue.bargein import DECIDE_MS, Verdict, judge
from voiceloop.dialogue.endpoint import asks_model, goes_on, hangover_ms
from voiceloop.dialogue.state import Chance, Contest, Played, Turn
from voiceloop.types import Calibration

QUIET_S = 0.12
"""After so much silence the last word is over: "uh-huh" has some in the middle, and half of it may
sound like a word."""
CUT_OFF_S = 0.5
"""A user who goes on so soon after the first sound had not finished: their turn was cut off."""
RESUMED_S = 1.5
"""A user who goes on so soon after they fell silent cannot have listened to an answer: they paused,
and however complete what they say next, they may pause again."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the end of turns in one language is told."""

    policy: TurnConfig
    calibration: Calibration | None
    """What the language model's probabilities mean; None where it has no say."""
    reads: bool
    """The language model reads the user's words while they speak, so that it can be asked."""
    hears: bool
    """A model judges by the sound of the voice too."""

    @property
    def asks_model(self) -> bool:
        """The language model has a say."""
        return self.reads and asks_model(self.policy, self.calibration)

    def silence_ms(self, turn: Turn) -> int | None:
        """The silence that ends the turn; None while its words are not known or not judged, and
        once it has ended."""
        words = bare(turn.text)
        if turn.words.whole is None or turn.ended:
            return None
        if not words or not self.asks_model:
            return hangover_ms(turn.text, None, self.policy, turn.language)
        if self.unread(turn, words) or self.unheard(turn):
            return None
        chance, sound = turn.chance.probability if turn.chance else None, sound_of(turn)
        found = hangover_ms(turn.text, chance, self.policy, turn.language, self.calibration, sound)
        return max(found, self.policy.hangover_ms) if turn.resumes else found

    def unread(self, turn: Turn, words: str) -> bool:
        """The language model has yet to say what it makes of a silence after `words`."""
        known = turn.chance.words if turn.chance else None
        return bool(words) and self.asks_model and known != words

    def unheard(self, turn: Turn) -> bool:
        """There is a silence, and nobody has said yet what its sound tells."""
        if not (self.hears and self.asks_model):
            return False
        return turn.silence is not None and sound_of(turn) is None

    def chance(self, words: str, probability: float | None, exchanges: int) -> Chance:
        """What the model found, as it would be in a first turn."""
        if probability is not None and self.calibration is not None:
            probability = comparable(probability, self.calibration, exchanges)
        return Chance(bare(words), probability)

    def expects(self, turn: Turn, words: str) -> bool:
        """The user, who still speaks, is likely to have said all with these `words`."""
        chance = turn.chance
        if turn.words.whole is not None or chance is None or chance.words != words:
            return False
        if chance.probability is None or self.calibration is None or not self.asks_model:
            return False
        likely = chance.probability >= self.calibration.complete_above
        return likely and bare(turn.hypothesis) == words

    def doubts(self, turn: Turn, words: str) -> bool:
        """The user, who is silent after these `words`, will probably go on."""
        chance = turn.chance
        if turn.ended or chance is None or chance.words != words:
            return False
        if chance.probability is None or self.calibration is None:
            return False
        return goes_on(chance.probability, self.calibration, sound_of(turn))


def sound_of(turn: Turn) -> float | None:
    """How likely the turn is over by the sound before the silence that there is."""
    if turn.sound is None or turn.silence is None or turn.sound.since != turn.silence.since:
        return None
    return turn.sound.probability


def verdict(turn: Turn, contest: Contest, played: Played, now: float) -> Verdict:
    """Whether a turn interrupts the reply that it began in, of which so much was `played`."""
    known = turn.words.whole or turn.words.newest
    speaking = turn.silence is None and not turn.ended
    waited_ms = (now - contest.since) * 1000
    found = judge(
        [word.text for word in known.committed + known.tentative] if known else [],
        turn.language,
        speaking=speaking,
        final=turn.words.whole is not None,
        waited_ms=waited_ms,
        spoken=played.words,
    )
    silent_s = 0.0 if turn.silence is None else now - turn.silence.at
    # What is said with a short silence in its middle may have only its first half so far.
    unsure = turn.silence is not None and not turn.ended and silent_s < QUIET_S
    waits = found is Verdict.INTERRUPT and unsure and waited_ms < DECIDE_MS
    return Verdict.WAIT if waits else found


def resumes(speaks: float, fell_silent: float | None) -> bool:
    """Whether a user who begins to speak, and fell silent last at those times, has only paused."""
    return fell_silent is not None and speaks - fell_silent < RESUMED_S


def cuts_off(rival: Turn, played: Played, since: float) -> bool:
    """Whether a turn that took the floor `since` then shows that the one before was cut off."""
    if played.turn != rival.id or played.first_sound is None or played.said_a_clause:
        return False
    return since - played.first_sound < CUT_OFF_S
