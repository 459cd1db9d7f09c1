"""Endpointing: from what the user has said to the silence that ends their turn.

The rule is in `endpoint`, and `turns` counts the silence. This asks the language model, which knows
how likely a turn ends where it has read to, and keeps each turn's hangover true to what was said.
It runs no stage and waits for nothing.
"""

from __future__ import annotations

import anyio

from voiceloop.endpoint import bare, comparable, hangover_ms
from voiceloop.engines import Conversation, Llm
from voiceloop.floor import Turn
from voiceloop.hearing import Hearing
from voiceloop.trace import Lane
from voiceloop.types import Calibration


class Endpointing:
    """Of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        hearing: Hearing,
        llm: Llm,
        *,
        prefills: bool,
        recognises: bool,
    ) -> None:
        """`llm` is whose `conversation` it is. It can be asked where it `prefills`, reads the
        user's words while they speak; unless the policy of `hearing` insists, it is once it is
        calibrated, which may happen at any time. `recognises` tells that there are words before
        the turn has ended."""
        self._conversation = conversation
        self._hearing = hearing
        self._llm = llm
        self._prefills = prefills
        self._recognises = recognises

    def silence_ms(self, turn: Turn) -> int:
        """The silence that ends the turn as things stand.

        Nothing can be answered before the words are known and judged, so there is no hurry until
        then: a recogniser that is slow cuts nobody off.
        """
        policy = self._hearing.policy
        if turn.hangover_ms is not None:
            return turn.hangover_ms
        over = turn.dismissed or turn.over.is_set()  # it will not be answered
        if policy.endpoint == "fixed" or over or not self._recognises:
            return policy.hangover_ms
        return max(policy.hangover_ms, policy.incomplete_ms)

    def asks_model(self, turn: Turn) -> bool:
        """The language model has a say."""
        policy = self._hearing.policy.endpoint
        calibrated = self._calibration(turn) is not None
        return self._prefills and (policy == "p-eot" or (policy == "auto" and calibrated))

    def judge(self, turn: Turn, begun: float | None = None) -> None:
        """Find how long a silence ends the turn, as far as that is known: whenever what the user
        has said has changed, or what the model makes of it, which it was asked for at `begun`."""
        judged, turn.hangover_ms = turn.hangover_ms, None
        text, whole = turn.understood()
        if not whole or turn.final is not None:
            return
        words, policy = bare(text), self._hearing.policy
        if not words or not self.asks_model(turn):
            turn.hangover_ms = hangover_ms(text, None, policy, turn.language)
        elif turn.chance is not None and turn.chance[0] == words:
            probability = turn.chance[1]
            turn.hangover_ms = hangover_ms(
                text, probability, policy, turn.language, self._calibration(turn)
            )
            if judged is None and probability is not None:
                now = anyio.current_time()
                since = now if begun is None else begun
                turn.recorder.span(
                    Lane.VAD, "end of turn?", since, now, probability=probability, text=words
                )

    def learn(self, turn: Turn, words: str, begun: float) -> None:
        """The model has read `words`, as it was asked to at `begun`."""
        turn.chance = words, self._probability(turn)
        self.judge(turn, begun)

    def expects(self, turn: Turn, words: str) -> bool:
        """Whether the user, who still speaks, is likely to have said all with these `words`, which
        the model has just read."""
        calibration = self._calibration(turn)
        if calibration is None or not self.asks_model(turn):
            return False
        probability = self._probability(turn)
        turn.chance = words, probability
        if probability is None or probability < calibration.complete_above:
            return False
        return not turn.understood()[1] and bare(turn.hypothesis) == words

    def doubts(self, turn: Turn, words: str) -> bool:
        """Whether the user, who is silent after these `words`, will probably go on."""
        known, probability = turn.chance or ("", None)
        calibration = self._calibration(turn)
        if turn.final is not None or known != words or probability is None or calibration is None:
            return False
        return probability < calibration.incomplete_below

    def _probability(self, turn: Turn) -> float | None:
        found, calibration = self._conversation.end_of_turn_probability(), self._calibration(turn)
        if found is None or calibration is None:
            return found
        return comparable(found, calibration, self._conversation.exchanges)

    def _calibration(self, turn: Turn) -> Calibration | None:
        return self._llm.calibrations.get(turn.language.code)
