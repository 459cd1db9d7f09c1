"""Tells how often a reply was begun before the user had asked for it.

    python -m lab.decoding.branches

Talks of two turns, of phrasings that the starter was not trained on: after the answer, and after
each word of the follow-up, replies are begun ahead as in a session. One counts if it was begun
before the last two words and half a second before their end, by the times of espeak-ng's words; it
is begun once its words are known and the models have computed all that was asked of them till then.
Beside it stands what guessing the same texts every time would give, with replies begun as early.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import mean
from time import thread_time
from typing import Any, cast

import numpy as np
from msgspec.structs import replace

from lab.command import carry_out
from lab.conversations.utterances import Utterance, speak
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.command import BenchLlm, Found
from voiceloop.bench.inside import target_of
from voiceloop.bench.llm import DecodingPlan, chosen
from voiceloop.bench.machine import describe
from voiceloop.bench.modes import Progress
from voiceloop.bench.record import BenchRecord, share
from voiceloop.bench.spoken import Line, draw_voice
from voiceloop.errors import ConfigError
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.engine import SpeculativeLlm, load_pair
from voiceloop.llm.parallel.ahead import Ahead
from voiceloop.types import TokenBurst

FOLLOW_UPS = Path(__file__).with_name("followups.txt")
"""Talks on the held-out side of the starter's domain, which `models.train.talks` has drawn: a
question, a tab, and what is said after its answer."""
GUESSED = ("Again, please.", "Please repeat.", "Once more, please.", "One more time.")
"""The four commonest follow-ups on the training side."""
DIFFERENT = ("Again, please.", "What did I say?", "Shorter, please.", "Another one, please.")
"""The commonest there among those that have different answers."""
BRANCHES = 4
"""At once, where the settings name no number."""
BEGINNING = 12
"""Replies that are alike for so many tokens have one first clause."""
EARLY_S = 0.5
"""A reply is to have been begun so long before the user's end."""
BEHIND_S = 0.3
"""From the end of a word until the language model is given it: a partial transcript every quarter
of a second, and its decode."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A question, and what is said after its answer."""

    first: str
    words: Sequence[str]
    ends: Sequence[float]
    """When each of the words ends, in seconds from the first one's beginning."""

    @property
    def parts(self) -> Sequence[tuple[int, float]]:
        """Numbers of words after which something may be begun early enough, and the seconds that
        there are for it; 0 words: before they speak, while the answer before it plays."""
        latest = self.ends[-1] - EARLY_S
        left = [latest - end - BEHIND_S for end in self.ends[:-2]]
        known = [(count, seconds) for count, seconds in enumerate(left, 1) if seconds > 0]
        return [(0, inf), *known] if latest > 0 else []


@dataclass(frozen=True, slots=True)
class Talked:
    """What came of a talk.

    Its fields are many because each is a figure.
    """

    hit: bool
    """All that was begun of a reply, early enough, was said."""
    guessed: bool
    """So it would have been with a reply to one of `GUESSED`."""
    different: bool
    """Or of `DIFFERENT`."""
    same: bool
    """The reply is the one that comes without anything begun ahead."""
    passes: int
    """Of the target, for the reply to the follow-up."""
    plain_passes: int
    """Of the target, where nothing was begun ahead."""
    begun: int
    """Tokens that were begun ahead."""
    accepted: int
    """Those among them that were said."""
    ahead_ms: float
    """What was begun ahead took so long, the search for what may be said included."""
    processor_ms: float
    """Processor time of that."""
    models_ms: float
    """Time of both models for both replies."""


def measure(plan: DecodingPlan, progress: Progress) -> BenchRecord:
    """Load the target of `plan` and measure it.

    Raises what loading it raises, and ConfigError where nothing can be begun ahead.
    """
    config = plan.config
    config = replace(config, branches=config.branches or BRANCHES)
    if config.temperature and config.verification == "rejection":
        raise ConfigError(
            "nothing is begun ahead in rejection sampling", "set llm.verification to coupled"
        )
    progress("speaking what is said")
    talks = read_talks(plan.prompts or FOLLOW_UPS)
    progress("loading the models")
    llm = SpeculativeLlm(*load_pair(config), config)
    found = list[Talked]()
    for done, talk in enumerate(talks, 1):
        progress(f"foreseeing: {done} of {len(talks)}")
        found.append(_foreseen(llm, talk))
    return BenchRecord(
        "branches",
        describe(target_of(llm)),
        {
            "target": config.target,
            "talks": len(talks),
            "branches": config.branches,
            "max_new_tokens": config.max_new_tokens,
            "temperature": config.temperature,
        },
        _figures(found),
    )


def read_talks(path: Path) -> list[Talk]:
    """The talks in a file, each with a voice of its own.

    Raises ConfigError for a file that cannot be read or holds none.
    """
    try:
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", "name a text file") from error
    pairs = [(first, then) for first, *rest in lines for then in rest[:1] if first and then.strip()]
    if not pairs:
        hint = "give --prompts a file with a question, a tab and a follow-up on each line"
        raise ConfigError(f"there are no talks in {path}", hint)
    rng = np.random.default_rng(0)
    spoken = speak([Line(then, *draw_voice(rng)) for _, then in pairs])
    return [_talk(first, said) for (first, _), said in zip(pairs, spoken, strict=True)]


def _talk(first: str, said: Utterance) -> Talk:
    bounds = [*said.starts[1:], len(said.pcm)]
    ends = [(bound - said.starts[0]) / SPEECH_RATE for bound in bounds]
    return Talk(first, said.text.split(), ends)


def _foreseen(llm: SpeculativeLlm, talk: Talk) -> Talked:
    """What was foreseen of a talk, and what that took."""
    text = " ".join(talk.words)
    plain, ahead = llm.conversation(), llm.conversation()
    for conversation in (plain, ahead):
        _answer(conversation, talk.first, 1)
    for count, seconds in talk.parts:
        _look(ahead, " ".join(talk.words[:count]), 2, seconds)
    passes = {one: one.counters.target_passes for one in (plain, ahead)}
    reply, same = (_answer(one, text, 2) for one in (plain, ahead))
    passes = {one: one.counters.target_passes - before for one, before in passes.items()}
    own, cost = cast(Ahead, ahead.hook).counters, plain.counters
    found = Talked(
        hit=own.hits > 0,
        guessed=_guesses(plain, reply, GUESSED),
        different=_guesses(plain, reply, DIFFERENT),
        same=reply == same,
        passes=passes[ahead],
        plain_passes=passes[plain],
        begun=own.tokens,
        accepted=own.accepted,
        ahead_ms=own.ms,
        processor_ms=own.processor_ms,
        models_ms=cost.draft_ms + cost.target_ms,
    )
    for conversation in (plain, ahead):
        conversation.close()
    return found


def _look(conversation: SpeculativeConversation, part: str, turn: int, seconds: float) -> None:
    """Look ahead from a part of the user's text, for so long of the thread's time."""
    if part:
        for _ in conversation.prefill(part, turn):
            pass
    steps = conversation.ahead(part, turn)
    assert steps is not None, "branches are set"
    until = thread_time() + seconds
    for _ in steps:
        if thread_time() > until:
            break
    steps.close()


def _answer(conversation: SpeculativeConversation, text: str, turn: int) -> tuple[int, ...]:
    """The beginning of the reply."""
    found = [item for item in conversation.reply(text, turn) if isinstance(item, TokenBurst)]
    return tuple(token for item in found for token in item.ids)[:BEGINNING]


def _guesses(
    conversation: SpeculativeConversation, reply: tuple[int, ...], texts: Sequence[str]
) -> bool:
    """Whether one of these texts has the same reply."""
    return any(_answer(conversation, text, 2) == reply for text in texts)


def _figures(found: Sequence[Talked]) -> dict[str, Any]:
    count = len(found)
    return {
        "hit_rate": share(sum(one.hit for one in found), count),
        "guessed_hit_rate": share(sum(one.guessed for one in found), count),
        "different_hit_rate": share(sum(one.different for one in found), count),
        "same_text": share(sum(one.same for one in found), count),
        "passes": round(mean(one.passes for one in found), 3),
        "plain_passes": round(mean(one.plain_passes for one in found), 3),
        "tokens_begun": round(mean(one.begun for one in found), 2),
        "tokens_accepted": round(mean(one.accepted for one in found), 2),
        "ahead_ms": round(mean(one.ahead_ms for one in found), 2),
        "processor_ms": round(mean(one.processor_ms for one in found), 2),
        "models_ms": round(mean(one.models_ms for one in found), 2),
    }


def run(command: BenchLlm, progress: Progress) -> Found:
    """Measure what a command asks for; raises what `measure` raises."""
    return measure(DecodingPlan(chosen(command), command.prompts), progress), {}


if __name__ == "__main__":
    sys.exit(carry_out(BenchLlm, run, sys.argv[1:]))
