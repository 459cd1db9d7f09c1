"""Computes the figures of the load from the results of its clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from lab.load.plan import CallerTurn
from voiceloop.bench.record import share, spread, word_errors

_spread = partial(spread, points=(50, 95, 99))


def answers(turns: Sequence[CallerTurn]) -> dict[str, Any]:
    """Return figures of the answers to `turns`: how many came, how soon, and how often their audio
    ran out."""
    done = [turn for turn in turns if turn.outcome == "done"]
    return {
        "turns": len(turns),
        "answered": len(done),
        "voice_to_voice_ms": _spread(turn.voice_to_voice_ms for turn in done),
        "endpoint_to_sound_ms": _spread(turn.endpoint_to_sound_ms for turn in done),
        "added_ms": _spread(turn.added_ms for turn in done),
        "found_late_ms": _spread(turn.found_late_ms for turn in done),
        "parts_ms": {
            name: _spread(turn.parts_ms.get(name) for turn in done)
            for name in (done[0].parts_ms if done else ())
        },
        "underruns": sum(turn.underruns for turn in turns),
    }


def understood(turns: Sequence[CallerTurn], texts: Mapping[str, str | None]) -> dict[str, int]:
    """Count the words that were said and the errors in transcripts. `texts` has the true words."""
    found = [word_errors(texts[turn.said] or "", turn.transcript) for turn in turns]
    return {
        "words": sum(one.words for one in found),
        "word_errors": sum(one.errors for one in found),
    }


def same_transcripts(alone: Sequence[CallerTurn], loaded: Sequence[CallerTurn]) -> float | None:
    """Return the share of the turns `loaded` that have the same transcript as the turn of the same
    sound in `alone`. None if no sound is in both."""
    transcripts = {turn.said: turn.transcript for turn in alone}
    same = [
        turn.transcript == transcripts[turn.said] for turn in loaded if turn.said in transcripts
    ]
    return share(sum(same), len(same))


def fairness(turns: Sequence[CallerTurn]) -> float | None:
    """Compare the median endpoint-to-sound times of the clients. Return the largest divided by the
    smallest; None without such times."""
    own: dict[int, list[float]] = defaultdict(list)
    for turn in turns:
        if turn.endpoint_to_sound_ms is not None:
            own[turn.client].append(turn.endpoint_to_sound_ms)
    medians = [median(values) for values in own.values()]
    return round(max(medians) / min(medians), 2) if medians and min(medians) > 0 else None
