"""Endpointing: from what the user has said to the silence that ends their turn.

The rule is in `endpoint`, and `turns` counts the silence. This asks the language model, which knows
how likely a turn ends where it has read to, and keeps each turn's hangover true to what was said.
It runs no stage and waits for nothing.
"""

from __future__ import annotations

import anyio

from voiceloop.endpoint import bare, hangover_ms
from voiceloop.engines import Conversation
from voiceloop.floor import Turn
from voiceloop.hearing import Hearing
from voiceloop.trace import Lane


class Endpointing:
    """Of one conversation."""

    def __init__(
        self, conversation: Conversation, hearing: Hearing, *, prefills: bool, calibrated: bool
    ) -> None:
        """The model can be asked where it `prefills`, reads the user's words while they speak;
        unless the policy of `hearing` insists, it is where what it says is `calibrated`."""
        self._conversation = conversation
        self._hearing = hearing
        self._prefills = prefills
        self._calibrated = calibrated

    @property
    def asks_model(self) -> bool:
        """The language model has a say."""
        policy = self._hearing.policy.endpoint
        return self._prefills and (policy == "p-eot" or (policy == "auto" and self._calibrated))

    def judge(self, turn: Turn, begun: float | None = None) -> None:
        """Find how long a silence ends the turn, as far as that is known: whenever what the user
        has said has changed, or what the model makes of it, which it was asked for at `begun`."""
        judged, turn.hangover_ms = turn.hangover_ms, None
        text, whole = turn.understood()
        if not whole or turn.final is not None:
            return
        words, policy = bare(text), self._hearing.policy
        if not words or not self.asks_model:
            turn.hangover_ms = hangover_ms(text, None, policy)
        elif turn.chance is not None and turn.chance[0] == words:
            probability = turn.chance[1]
            turn.hangover_ms = hangover_ms(text, probability, policy)
            if judged is None and probability is not None:
                now = anyio.current_time()
                since = now if begun is None else begun
                turn.recorder.span(
                    Lane.VAD, "end of turn?", since, now, probability=probability, text=words
                )

    def learn(self, turn: Turn, words: str, begun: float) -> None:
        """The model has read `words`, as it was asked to at `begun`."""
        turn.chance = words, self._conversation.end_of_turn_probability()
        self.judge(turn, begun)

    def expects(self, turn: Turn, words: str) -> bool:
        """Whether the user, who still speaks, is likely to have said all with these `words`, which
        the model has just read."""
        if not self.asks_model:
            return False
        probability = self._conversation.end_of_turn_probability()
        turn.chance = words, probability
        if probability is None or probability < self._hearing.policy.complete_above:
            return False
        return not turn.understood()[1] and bare(turn.hypothesis) == words

    def doubts(self, turn: Turn, words: str) -> bool:
        """Whether the user, who is silent after these `words`, will probably go on."""
        known, probability = turn.chance or ("", None)
        if turn.final is not None or known != words or probability is None:
            return False
        return probability < self._hearing.policy.incomplete_below
