"""Evaluates how sessions judge silences: as pauses within a turn, or as its end.

A `Silence` is a silence at a known place of a clip, with the words before it and the end
probabilities of the language model and of the turn model. From many silences this module computes
how well each probability separates ends from pauses. It also computes the costs of an endpoint
policy: the delay at ends, and cut-offs in pauses. It knows neither engines nor clocks. The clips
are English.
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
from voiceloop.dialogue.endpoint import TurnSoFar, hangover_ms
from voiceloop.languages.en import ENGLISH
from voiceloop.settings.config import TurnConfig
from voiceloop.trace.record import Lane
from voiceloop.types import Calibration

LAG_MS = 64.0
"""An endpoint counts as decided in a pause if it comes at most this long after the pause."""
Policy = Literal["fixed", "trailing-words", "p-eot"]
WAITS_MS = range(60, 1101, 20)
"""Hangovers that are tried with each policy, beside the configured one."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A place in a clip where the user says nothing."""

    clip: str
    standing: Standing | Literal["end"]
    """The standing of the words before it; `end` for the silence after all words."""
    length_ms: float | None
    """Length of the pause; None for the silence after all words, which has no end."""
    text: str
    """The transcript at the judgement; without a judgement in time, the words that were said."""
    probability: float | None = None
    """End probability after `text`; None without a judgement in time."""
    judged_ms: float | None = None
    """Milliseconds from the beginning of the silence until `probability` was known."""
    sound: float | None = None
    """End probability by the turn model; None if it gave none."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    begun: float
    """When the judgement began, as a sample of the room's stream."""
    known: float
    """When its result was known, as a sample of the room's stream."""
    text: str
    probability: float
    sound: float | None


def silences(clip: LabClip, take: Take) -> list[Silence]:
    """Return the silences of `clip`: its inserted pauses, and the silence after all words. Return
    none if the true end of speech is not known.

    A judgement belongs to the silence in which it began. If there are several, the last one counts.
    Judgements that began elsewhere, such as within a word, are ignored.
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
    # A turn without words cannot be judged by its words.
    return [*pauses, end] if end.text else pauses


def _judgements(take: Take) -> list[_Judgement]:
    """Return the judgements of end of turn in a take, in the order in which they began."""
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
    """Return for each inserted pause the standing of its prefix, and whether it ended a turn."""
    pauses = clip.said.pauses
    ended = _ended(take, [(pause.start, pause.end) for pause in pauses])
    return [(pause.standing, cut) for pause, cut in zip(pauses, ended, strict=True)]


def _ended(take: Take, pauses: Sequence[tuple[int, int]]) -> list[bool]:
    """Return for each pause whether an endpoint was decided in it."""
    ends = [event.sample for event in take.events if isinstance(event, TurnEnded)]
    lag = samples(LAG_MS)
    return [any(start <= end < until + lag for end in ends) for start, until in pauses]


def own_pauses(clip: LabClip, take: Take) -> dict[str, int]:
    """Count the speaker's own pauses in `clip`, and those of them that ended a turn."""
    ended = _ended(take, clip.said.own_pauses)
    return {"pauses": len(ended), "ended": sum(ended)}


def cut_off_shares(found: Sequence[tuple[Standing, bool]]) -> dict[str, dict[str, float | None]]:
    """Count pauses, and those of them that ended a turn, by the standing of their prefix."""
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
    """Return the areas under ROC curves of four scores that separate ends from pauses.

    Only pauses after incomplete text count. The scores are the end probabilities of the language
    model and of the turn model, both together, and the last word alone. All areas are over the
    silences that were judged. All are None if there is no end or no pause, and those with the turn
    model are None if it did not judge every silence.
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
    """Return after how many ms of silence the policy of `config` ends the turn in this place.

    This holds if no endpoint came in a pause just before. Policies other than `fixed` do not decide
    before the judgement is known.
    """
    known = TurnSoFar(one.text, one.probability, config, ENGLISH, calibration, one.sound)
    wait = hangover_ms(known)
    return wait if config.endpoint == "fixed" else max(wait, one.judged_ms or 0.0)


def curve(
    found: Sequence[Silence], policy: Policy, config: TurnConfig, calibration: Calibration | None
) -> list[dict[str, Any]]:
    """Return the costs of `policy` for each hangover of `WAITS_MS` and for the configured one.

    With the policy `p-eot` these are hangovers of turns that seem complete. Other turns have the
    configured hangover, or this one if it is longer.
    """
    waits = sorted({*WAITS_MS, configured_ms(policy, config)})
    # The hangover that is tried replaces the least silence of the calibration.
    adapted = calibration and replace(calibration, complete_ms=0)
    return [_cost(found, _waiting(config, policy, wait), adapted) | {"ms": wait} for wait in waits]


def configured_ms(policy: Policy, config: TurnConfig) -> int:
    """Return the hangover in `config`: for `p-eot`, that of turns that seem complete."""
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
    """Return the figures of endpointing. `cuts` has the results of `cut_offs` for each mode that
    makes its own endpoint decisions."""
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
