"""Decides when the user's turn is over: when a silence has lasted long enough.

A rule gives the length of that silence, by the words so far, the language model's judgement of
them, the sound of the voice, and the settings. A package may bring a rule of its own
(`voiceloop.endpoint` entry points). The rules have no state. `EndpointPolicy` applies them to a
turn, again whenever the words or one of the judgements has changed. This module knows neither audio
nor models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.calibration.probability import comparable, odds
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import EndProbability, SoundJudgement, Turn
from voiceloop.languages import Language, bare
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration

EVIDENT = 4.0
"""Odds of an end, by words and sound together, from which the shortest silence ends a turn.

At even odds, `TurnConfig.hangover_ms` of silence end it. In between, the silence falls linearly
with the logarithm of the odds. Values from 3 to 10 gave nearly equal results on recordings of
people, both at their ends and at pauses that had been put into them.
"""


@dataclass(frozen=True, slots=True)
class TurnSoFar:
    """What is known of a turn in whose silence a rule is asked."""

    text: str
    """What was said so far."""
    probability: float | None
    """The language model's probability that a turn ends after `text` without its final punctuation,
    converted by `comparable`; None while it is not known."""
    config: TurnConfig
    language: Language
    calibration: Calibration | None = None
    """What the probability means; if it is None, the probability is not used."""
    sound: float | None = None
    """The turn model's probability that the turn is over; None if it has not judged that."""


class EndpointRule:
    """A rule for the silence that ends a turn. This one is `fixed`: it asks nobody."""

    needs_words = False
    """Whether the silence depends on what was said."""

    def asks_model(self, *, calibrated: bool) -> bool:
        """Return whether the rule uses the language model's probability, provided that the model
        reads the words. `calibrated` says whether it is known what the probability means."""
        return False

    def silence_ms(self, said: TurnSoFar) -> int:
        """Return the milliseconds of silence that end the turn."""
        return said.config.hangover_ms


class _TrailingWords(EndpointRule):
    # Words that ask for more show that a turn goes on, but other words show little. So only a
    # probability may lead to the shortest silence.
    needs_words = True

    def silence_ms(self, said: TurnSoFar) -> int:
        more = said.language.asks_for_more(said.text)
        return said.config.incomplete_ms if more else said.config.hangover_ms


class _Probable(EndpointRule):
    needs_words = True

    def asks_model(self, *, calibrated: bool) -> bool:
        return True

    def silence_ms(self, said: TurnSoFar) -> int:
        if said.probability is None or said.calibration is None:
            return super().silence_ms(said)
        return _by_probability(said.probability, said.config, said.calibration, said.sound)


class _Auto(_Probable, _TrailingWords):
    def asks_model(self, *, calibrated: bool) -> bool:
        return calibrated


ENDPOINT_RULES: dict[str, EndpointRule] = {
    "auto": _Auto(),
    "p-eot": _Probable(),
    "trailing-words": _TrailingWords(),
    "fixed": EndpointRule(),
}
"""The rules by their names in `turns.endpoint`. `load_rules` in `turn/resources` adds the
configured one of a package."""


def hangover_ms(said: TurnSoFar) -> int:
    """Return the milliseconds of silence that end the turn by the configured rule."""
    return ENDPOINT_RULES[said.config.endpoint].silence_ms(said)


def goes_on(probability: float, calibration: Calibration, sound: float | None = None) -> bool:
    """Return whether the user has evidently not finished, by the criteria of `p-eot`."""
    if sound is None:
        return probability < calibration.incomplete_below
    return _favour(probability, calibration.incomplete_below, sound) < 1


def _by_probability(
    probability: float, config: TurnConfig, calibration: Calibration, sound: float | None
) -> int:
    if goes_on(probability, calibration, sound):
        return config.incomplete_ms
    # With a short hangover, even an evident end must not take longer than that.
    shortest_ms = min(max(config.complete_ms, calibration.complete_ms), config.hangover_ms)
    if sound is None:
        complete = probability >= calibration.complete_above
        return shortest_ms if complete else config.hangover_ms
    favour = _favour(probability, calibration.complete_above, sound)
    evident = min(1.0, max(0.0, math.log(favour) / math.log(EVIDENT)))
    return round(config.hangover_ms + evident * (shortest_ms - config.hangover_ms))


def _favour(probability: float, threshold: float, sound: float) -> float:
    """Return the odds of an end by words and sound. They are 1 if `probability` equals `threshold`
    and `sound` is one half.

    Words and sound are different evidence, so their odds are multiplied.
    """
    return odds(probability) / odds(threshold) * odds(sound)


def with_eagerness(
    config: TurnConfig, eagerness: Literal["low", "medium", "high", "auto"]
) -> TurnConfig:
    """Return `config` with the silences for a user who wants to be answered with `eagerness`.

    `medium` and `auto` change nothing. `low` waits at least 400 ms after words that are evidently
    complete, 1000 ms after words that leave this open, and 1200 ms after words that are evidently
    incomplete. No silence within a turn may be longer than 1200 ms. `high` waits at most 300 ms
    after words that leave it open whether they are complete, and 600 ms after words that are
    evidently incomplete.
    """
    match eagerness:
        case "low":
            return replace(
                config,
                complete_ms=max(config.complete_ms, 400),
                hangover_ms=max(config.hangover_ms, 1000),
                incomplete_ms=max(config.incomplete_ms, 1200),
            )
        case "high":
            return replace(
                config,
                hangover_ms=min(config.hangover_ms, 300),
                incomplete_ms=min(config.incomplete_ms, 600),
            )
        case "medium" | "auto":
            return config


@dataclass(frozen=True, slots=True)
class EndpointPolicy:
    """The endpoint rules for one language, with their settings and calibration."""

    config: TurnConfig
    calibration: Calibration | None
    """What the language model's probabilities mean; None if they are not used."""
    reads: bool
    """Whether the language model reads the user's words while they speak, so that it can judge
    them."""
    hears: bool
    """Whether the turn model judges the sound of the voice too."""

    @property
    def asks_model(self) -> bool:
        """Whether the language model's probability is used."""
        rule = ENDPOINT_RULES[self.config.endpoint]
        return self.reads and rule.asks_model(calibrated=self.calibration is not None)

    def silence_ms(self, turn: Turn) -> int | None:
        """Return the milliseconds of silence that end the turn. None while its words are not known
        or not judged, and once it has ended."""
        words, known = bare(turn.text), turn.end_probability
        if turn.words.whole is None or turn.ended:
            return None
        if not words or not self.asks_model:
            return hangover_ms(TurnSoFar(turn.text, None, self.config, turn.language))
        if self.unread(turn, words) or self.unheard(turn):
            return None
        about = self.config, turn.language, self.calibration, _sound_of(turn)
        found = hangover_ms(TurnSoFar(turn.text, known and known.probability, *about))
        return max(found, self.config.hangover_ms) if turn.resumes else found

    def unread(self, turn: Turn, words: str) -> bool:
        """Return whether the language model must still judge if `words` end the turn."""
        known = turn.end_probability.words if turn.end_probability else None
        return bool(words) and self.asks_model and known != words

    def unheard(self, turn: Turn) -> bool:
        """Return whether the turn model must still judge the sound before the present silence."""
        if not (self.hears and self.asks_model):
            return False
        return turn.silence is not None and _sound_of(turn) is None

    def judged(self, report: inputs.Read) -> EndProbability:
        """Return the reported end probability. If there is a calibration, `comparable` converts the
        probability to the scale of a first turn."""
        probability = report.probability
        if probability is not None and self.calibration is not None:
            probability = comparable(probability, self.calibration, report.exchanges)
        return EndProbability(bare(report.text), probability)

    def expects(self, turn: Turn, words: str) -> bool:
        """Return whether `words`, while the user still speaks, are probably the whole turn."""
        known = self._known(turn, words)
        if turn.words.whole is not None or known is None or not self.asks_model:
            return False
        probability, calibration = known
        return probability >= calibration.complete_above and bare(turn.hypothesis) == words

    def doubts(self, turn: Turn, words: str) -> bool:
        """Return whether the user, who is silent after these `words`, will probably go on."""
        known = self._known(turn, words)
        return known is not None and not turn.ended and goes_on(*known, _sound_of(turn))

    def _known(self, turn: Turn, words: str) -> tuple[float, Calibration] | None:
        """Return the probability that the turn ends after `words`, and what it means. None if one
        of them is not known."""
        known = turn.end_probability
        if known is None or known.words != words or known.probability is None:
            return None
        return self.calibration and (known.probability, self.calibration)


def policy_for(state: ConversationState, turn: Turn) -> EndpointPolicy:
    """Return the endpoint policy of a turn."""
    return EndpointPolicy(
        state.settings.policy,
        state.calibrations.get(turn.language.code),
        state.abilities.prefills and state.settings.thinks,
        state.abilities.turn_model_ms is not None,
    )


def end_in_silence(state: ConversationState) -> None:
    """End the turn that is being heard, if there has been enough silence."""
    if state.silence is not None and state.silence.reaches(_awaited_ms(state)):
        state.silence, state.ending = None, True
        state.ask(actions.EndTurn())


def _awaited_ms(state: ConversationState) -> int:
    """Return the milliseconds of silence that end the turn that is being heard.

    Nothing can be answered before the words are known and judged. Until then the longest silence
    applies, so that a slow recogniser cuts nobody off.
    """
    config, turn = state.settings.policy, state.turn(state.listening)
    if turn and turn.ends_after_ms is not None:
        return turn.ends_after_ms
    needs_words = ENDPOINT_RULES[config.endpoint].needs_words and state.abilities.recognises
    waits = needs_words and turn and not turn.dismissed
    return max(config.hangover_ms, config.incomplete_ms) if waits else config.hangover_ms


def judge_end(
    state: ConversationState, turn_id: int | None, requested_at: float | None = None
) -> None:
    """Update the length of silence that ends the turn. If the turn model is needed for that,
    request its judgement.

    `requested_at` is when the language model's judgement was requested, for the trace; None means
    now.
    """
    turn = state.turn(turn_id)
    if turn is None:
        return
    policy = policy_for(state, turn)
    silence_ms = policy.silence_ms(turn)
    state.change(turn.id, ends_after_ms=silence_ms)
    if turn.ends_after_ms is None and silence_ms is not None and policy.asks_model:
        _record_judgement(state, turn, state.now if requested_at is None else requested_at)
    _ask_turn_model(state, turn, policy)


def take_probability(state: ConversationState, turn: Turn, report: inputs.Read) -> None:
    """Store the end probability that `report` gives for the words so far, and update the silence
    that ends the turn. Do nothing if there are no words or the probability is not used."""
    policy = policy_for(state, turn)
    if report.text and policy.asks_model:
        state.change(turn.id, end_probability=policy.judged(report))
        judge_end(state, turn.id, report.begun)


def take_sound(state: ConversationState, report: inputs.SoundJudged) -> None:
    """Take the turn model's judgement of the sound before a silence."""
    state.judging = None
    state.change(report.turn, sound=SoundJudgement(report.since, report.probability))
    judge_end(state, report.turn)


def _ask_turn_model(state: ConversationState, turn: Turn, policy: EndpointPolicy) -> None:
    """Request the turn model's judgement of a silence, once it is long enough."""
    least_ms, silence = state.abilities.turn_model_ms, turn.silence
    if state.judging or least_ms is None or silence is None or turn.id != state.listening:
        return
    silent_ms = (state.heard_to - silence.since) * 1000 / SPEECH_RATE
    if policy.unheard(turn) and not turn.dismissed and silent_ms >= least_ms:
        state.judging = actions.JudgeSound(turn.id, silence.since)
        state.ask(state.judging)


def _record_judgement(state: ConversationState, turn: Turn, since: float) -> None:
    known = turn.end_probability
    if known is None or known.probability is None or not bare(turn.text):
        return
    facts: dict[str, float | str] = {"probability": known.probability, "text": bare(turn.text)}
    if (sound := _sound_of(turn)) is not None:
        facts["sound"] = sound
    state.ask(actions.RecordDecision(turn.id, "end of turn?", since, facts))


def _sound_of(turn: Turn) -> float | None:
    """Return the turn model's probability that the turn is over, judged at the present silence.
    None if it has not judged this silence."""
    if turn.sound is None or turn.silence is None or turn.sound.since != turn.silence.since:
        return None
    return turn.sound.probability
