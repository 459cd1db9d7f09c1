"""Endpointing: from what the user has said to the silence that ends their turn.

The rule is in `endpoint`, and `turns` counts the silence. This asks the language model, which knows
how likely a turn ends where it has read to, and where there is one the model that judges by sound,
and keeps each turn's hangover true to what was said. It runs no stage and waits for nothing.
"""

from __future__ import annotations

import anyio

from voiceloop.audio import samples
from voiceloop.endpoint import bare, comparable, goes_on, hangover_ms
from voiceloop.engines import Conversation, Llm, TurnModel
from voiceloop.floor import Turn
from voiceloop.hearing import Hearing
from voiceloop.trace import Lane
from voiceloop.types import Calibration, Pcm


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
        ear: TurnModel | None = None,
    ) -> None:
        """`llm` is whose `conversation` it is. It can be asked where it `prefills`, reads the
        user's words while they speak; unless the policy of `hearing` insists, it is once it is
        calibrated, which may happen at any time. `recognises` tells that there are words before
        the turn has ended. The `ear` has a say wherever the language model has one."""
        self._conversation = conversation
        self._hearing = hearing
        self._llm = llm
        self._prefills = prefills
        self._recognises = recognises
        self._ear = ear

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
        elif not self.unread(turn, words) and not self._unheard(turn):
            _, probability = turn.chance or ("", None)
            sound = self._sound(turn)
            turn.hangover_ms = hangover_ms(
                text, probability, policy, turn.language, self._calibration(turn), sound
            )
            if judged is None and probability is not None:
                now = anyio.current_time()
                since = now if begun is None else begun
                heard = {} if sound is None else {"sound": sound}
                turn.recorder.span(
                    Lane.VAD,
                    "end of turn?",
                    since,
                    now,
                    probability=probability,
                    text=words,
                    **heard,
                )

    def unread(self, turn: Turn, words: str) -> bool:
        """The language model has yet to say what it makes of a silence after `words`."""
        known, _ = turn.chance or (None, None)
        return bool(words) and self.asks_model(turn) and known != words

    def to_hear(self, turn: Turn) -> tuple[int, Pcm] | None:
        """What is to be judged by its sound now: where the silence began, and the audio."""
        if self._ear is None or turn.dismissed or turn.ended or not self._unheard(turn):
            return None
        assert turn.transcriber is not None and turn.transcriber.silent_from is not None
        if turn.transcriber.silence_ms() < self._ear.silence_ms:
            return None
        heard = self._hearing.recent
        first = max(turn.transcriber.start, heard.end - samples(1000 * self._ear.window_s))
        return turn.transcriber.silent_from, heard.read(max(first, heard.start), heard.end)

    def hear(self, turn: Turn, since: int, probability: float, begun: float) -> None:
        """Such is the probability by the sound before the silence that began with sample `since`,
        as it was asked for at `begun`."""
        now = anyio.current_time()
        turn.recorder.span(Lane.VAD, "end by its sound?", begun, now, probability=probability)
        turn.sound = since, probability
        self.judge(turn)

    def learn(self, turn: Turn, words: str, begun: float) -> None:
        """The model has read `words`, as it was asked to at `begun`."""
        turn.chance = words, self._probability(turn)
        self.judge(turn, begun)

    def expects(self, turn: Turn, words: str) -> bool:
        """Whether the user, who still speaks, is likely to have said all with these `words`, which
        the model has just read."""
        known, probability = turn.chance or ("", None)
        calibration = self._calibration(turn)
        if known != words or probability is None or calibration is None:
            return False
        if probability < calibration.complete_above:
            return False
        return not turn.understood()[1] and bare(turn.hypothesis) == words

    def doubts(self, turn: Turn, words: str) -> bool:
        """Whether the user, who is silent after these `words`, will probably go on."""
        known, probability = turn.chance or ("", None)
        calibration = self._calibration(turn)
        if turn.final is not None or known != words or probability is None or calibration is None:
            return False
        return goes_on(probability, calibration, self._sound(turn))

    def _unheard(self, turn: Turn) -> bool:
        """There is a silence, and the ear has yet to say what it makes of it."""
        if self._ear is None or turn.transcriber is None or not self.asks_model(turn):
            return False
        return turn.transcriber.silent_from is not None and self._sound(turn) is None

    def _sound(self, turn: Turn) -> float | None:
        """How likely the turn is over by the sound before the silence that there is."""
        since, probability = turn.sound or (None, None)
        silent_from = turn.transcriber.silent_from if turn.transcriber else None
        return probability if since == silent_from else None

    def _probability(self, turn: Turn) -> float | None:
        found, calibration = self._conversation.end_of_turn_probability(), self._calibration(turn)
        if found is None or calibration is None:
            return found
        return comparable(found, calibration, self._conversation.exchanges)

    def _calibration(self, turn: Turn) -> Calibration | None:
        return self._llm.calibrations.get(turn.language.code)
