"""What a session makes of the silences in what is said: pauses, and true ends.

Each silence of known place is one `Silence`, with what the language model, the sound of the voice
and the last word said about it. From many follow how well each tells an end from a pause, and what
a policy of endpointing costs: delay where the user has ended, cut-offs where they have not. Knows
neither engines nor clocks. What is said in the clips is English.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal, get_args

from msgspec import structs

from lab.conversations.clips import LabClip
from lab.conversations.scores import roc_auc
from lab.conversations.sentences import Standing
from voiceloop.asr.turns import TurnEnded
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.record import share
from voiceloop.bench.takes import Take
from voiceloop.calibration.probability import odds
from voiceloop.config import TurnConfig
from voiceloop.dialogue.endpoint import hangover_ms
from voiceloop.languages.en import ENGLISH
from voiceloop.trace.record import Lane
from voiceloop.types import Calibration

LAG_MS = 64.0
"""An endpoint this soon after speech has gone on was decided in the pause."""
Policy = Literal["fixed", "trailing-words", "p-eot"]
WAITS_MS = range(60, 1101, 20)
"""Silences that are tried as the one that ends any turn, or one that seems complete; beside them
the configured one."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A place in a clip where the user says nothing."""

    clip: str
    standing: Standing | Literal["end"]
    """How the words before it stand by themselves; `end` where all has been said."""
    length_ms: float | None
    """None for the end: it lasts."""
    text: str
    """What was understood when it was judged; what was said where nobody judged it in time."""
    probability: float | None = None
    """P(end of turn) after `text`; None where nobody judged it in time."""
    judged_ms: float | None = None
    """From its beginning until that was known."""
    sound: float | None = None
    """The probability by the sound of the voice, where somebody judged that."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    begun: float
    """Sample of the room's stream."""
    known: float
    text: str
    probability: float
    sound: float | None


def silences(clip: LabClip, take: Take) -> list[Silence]:
    """The pauses that were made in `clip`, and its end; none where they are not known.

    A judgement belongs to the silence in which it was begun, and of several the last counts. Those
    begun elsewhere, such as within a word, belong to none.
    """
    said = clip.said
    if said.end is None:
        return []
    judgements = _judgements(take)

    def silence(
        standing: Standing | Literal["end"], start: int, end: int | None, text: str
    ) -> Silence:
        last = math.inf if end is None else end + samples(LAG_MS)
        length_ms = None if end is None else _ms(end - start)
        own = next((one for one in reversed(judgements) if start <= one.begun < last), None)
        if own is None:
            return Silence(clip.name, standing, length_ms, text)
        judged_ms = _ms(own.known - start)
        return Silence(
            clip.name, standing, length_ms, own.text, own.probability, judged_ms, own.sound
        )

    pauses = [silence(one.standing, one.start, one.end, one.prefix) for one in said.pauses]
    end = silence("end", said.end, None, said.text or "")
    # Of words that nobody knows the last cannot be judged.
    return [*pauses, end] if end.text else pauses


def _judgements(take: Take) -> list[_Judgement]:
    """In the order in which they were begun."""
    found: list[_Judgement] = []
    for trace in take.traces:
        found += [
            _Judgement(
                (span.start - take.began) * SPEECH_RATE,
                (span.end - take.began) * SPEECH_RATE,
                str(span.args["text"]),
                float(span.args["probability"]),
                float(span.args["sound"]) if "sound" in span.args else None,
            )
            for span in trace.spans
            if span.lane == Lane.VAD and span.name == "end of turn?"
        ]
    return sorted(found, key=lambda one: one.begun)


def cut_offs(clip: LabClip, take: Take) -> list[tuple[Standing, bool]]:
    """For each pause that was made in `clip`, how its prefix stands and whether it ended a turn."""
    pauses = clip.said.pauses
    ended = _ended(take, [(pause.start, pause.end) for pause in pauses])
    return [(pause.standing, cut) for pause, cut in zip(pauses, ended, strict=True)]


def _ended(take: Take, pauses: Sequence[tuple[int, int]]) -> list[bool]:
    """For each pause, whether a turn was taken to end in it."""
    ends = [event.sample for event in take.events if isinstance(event, TurnEnded)]
    lag = samples(LAG_MS)
    return [any(start <= end < until + lag for end in ends) for start, until in pauses]


def own_pauses(clip: LabClip, take: Take) -> dict[str, int]:
    """The pauses that the speaker made in `clip`, and how many of them ended a turn."""
    ended = _ended(take, clip.said.own_pauses)
    return {"pauses": len(ended), "ended": sum(ended)}


def cut_off_shares(found: Sequence[tuple[Standing, bool]]) -> dict[str, dict[str, float | None]]:
    """Pauses and how many of them ended a turn, by how their prefix stands."""
    shares: dict[str, dict[str, float | None]] = {}
    for standing in get_args(Standing):
        own = [cut for one, cut in found if one == standing]
        shares[standing] = {
            "pauses": len(own),
            "ended": sum(own),
            "cut_off": share(sum(own), len(own)),
        }
    return shares


def areas(found: Sequence[Silence]) -> dict[str, float | None]:
    """How well an end is told from a pause after an incomplete prefix: areas under ROC curves.

    Of P(end of turn), of the sound of the voice and both together where somebody judged it, and of
    the last word alone, over the same silences: those that were judged. None where there are not
    both kinds.
    """
    judged = [one for one in found if one.probability is not None]
    ends = [one for one in judged if one.standing == "end"]
    pauses = [one for one in judged if one.standing == "incomplete"]

    heard = all(one.sound is not None for one in judged)

    def area(score: Callable[[Silence], float]) -> float | None:
        if not ends or not pauses:
            return None
        return round(roc_auc([*map(score, ends)], [*map(score, pauses)]), 4)

    return {
        "p_eot": area(lambda one: one.probability or 0.0),
        "sound": area(lambda one: one.sound or 0.0) if heard else None,
        "both": area(_both) if heard else None,
        "trailing_words": area(lambda one: float(not ENGLISH.asks_for_more(one.text))),
        "ends": len(ends),
        "incomplete": len(pauses),
    }


def _both(one: Silence) -> float:
    assert one.probability is not None and one.sound is not None
    return odds(one.probability) * odds(one.sound)


def wait_ms(one: Silence, config: TurnConfig, calibration: Calibration | None) -> float:
    """Silence after which the policy of `config` ends the turn in this place, if no other turn has
    ended in a pause just before.

    No policy but `fixed` decides before its judgement is there.
    """
    wait = hangover_ms(one.text, one.probability, config, ENGLISH, calibration, one.sound)
    return wait if config.endpoint == "fixed" else max(wait, one.judged_ms or 0.0)


def curve(
    found: Sequence[Silence], policy: Policy, config: TurnConfig, calibration: Calibration | None
) -> list[dict[str, Any]]:
    """What `policy` costs with each of `WAITS_MS`.

    That is the silence which ends any turn, or, where the policy distinguishes, one that seems
    complete; none that seems less so is ended sooner.
    """
    waits = sorted({*WAITS_MS, configured_ms(policy, config)})
    # The silence that is tried stands in for the one that the model was calibrated to.
    asked = calibration and replace(calibration, complete_ms=0)
    return [_cost(found, _waiting(config, policy, wait), asked) | {"ms": wait} for wait in waits]


def configured_ms(policy: Policy, config: TurnConfig) -> int:
    """The silence that ends any turn in `config`, or one that seems complete."""
    return config.complete_ms if policy == "p-eot" else config.hangover_ms


def _waiting(config: TurnConfig, policy: Policy, wait: int) -> TurnConfig:
    hangover = max(wait, config.hangover_ms) if policy == "p-eot" else wait
    return structs.replace(
        config,
        endpoint=policy,
        hangover_ms=hangover,
        complete_ms=wait,
        incomplete_ms=max(wait, config.incomplete_ms),
    )


def _cost(
    found: Sequence[Silence], config: TurnConfig, calibration: Calibration | None
) -> dict[str, float | None]:
    def cut(pauses: Sequence[Silence]) -> float | None:
        cuts = [(one.length_ms or 0.0) >= wait_ms(one, config, calibration) for one in pauses]
        return round(fmean(cuts), 4) if cuts else None

    delays = [wait_ms(one, config, calibration) for one in found if one.standing == "end"]
    return {
        "delay_ms": round(fmean(delays), 1) if delays else None,
        "cut_offs_incomplete": cut([one for one in found if one.standing == "incomplete"]),
        "cut_offs": cut([one for one in found if one.standing != "end"]),
    }


def endpointing(
    found: Sequence[Silence],
    cuts: Mapping[str, Sequence[tuple[Standing, bool]]],
    config: TurnConfig,
    calibration: Calibration | None,
) -> dict[str, Any]:
    """The record of endpointing; `cuts` are those of each mode that decides for itself."""
    judged = any(one.probability is not None for one in found)
    policies: tuple[Policy, ...] = get_args(Policy) if judged else ("fixed", "trailing-words")
    return {
        "cut_offs": {mode: cut_off_shares(own) for mode, own in cuts.items()},
        "auc": areas(found),
        "configured_ms": {policy: configured_ms(policy, config) for policy in policies},
        "curves": {policy: curve(found, policy, config, calibration) for policy in policies},
        "points": [asdict(one) | {"unfinished": ENGLISH.asks_for_more(one.text)} for one in found],
    }


def _ms(count: float) -> float:
    return round(count / SPEECH_RATE * 1000, 2)
