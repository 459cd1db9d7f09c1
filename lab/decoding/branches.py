"""Measures how often the right reply was begun ahead, before the user had finished the request.

    python -m lab.decoding.branches

The talks have two turns, in phrasings that the starter was not trained on. After the answer, and
after each word of the follow-up, replies are begun ahead as in a session: once the words so far are
known and the models have finished their work. A branch counts if it was begun before the last two
words, and at least half a second before the end of speech. Word times are those of espeak-ng. For
comparison the record has the hit rate of branches that always reply to the same few texts.
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
from voiceloop_parallel.ahead import Ahead

from lab.command import carry_out
from lab.conversations.utterances import Utterance, speak
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.command import BenchLlm, Found
from voiceloop.bench.llm import chosen
from voiceloop.bench.modes import Progress, target_of
from voiceloop.bench.record import BenchRecord, describe, share
from voiceloop.bench.suites import Line, draw_voice
from voiceloop.errors import ConfigError
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.pair import load_pair
from voiceloop.types import TokenBurst

FOLLOW_UPS = Path(__file__).with_name("followups.txt")
"""File of held-out talks of the starter's domain, drawn by `models.train.talks`. A line has a
question, a tab, and the follow-up that the user says after the answer."""
GUESSED = ("Again, please.", "Please repeat.", "Once more, please.", "One more time.")
"""The four commonest follow-ups on the training side."""
DIFFERENT = ("Again, please.", "What did I say?", "Shorter, please.", "Another one, please.")
"""The four commonest follow-ups on the training side that have different answers."""
BRANCHES = 4
"""Number of branches at once, if the settings give none."""
BEGINNING = 12
"""Replies with this many equal first tokens count as equal: they have the same first clause."""
EARLY_S = 0.5
"""Seconds before the end of speech by which a branch must have been begun."""
BEHIND_S = 0.3
"""Seconds from the end of a word until the language model gets it. A partial decode begins every
quarter of a second, and takes its time."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A question, and the follow-up that the user says after its answer."""

    first: str
    words: Sequence[str]
    """The words of the follow-up."""
    ends: Sequence[float]
    """The end of each word of the follow-up, in seconds from the beginning of the first word."""

    @property
    def parts(self) -> Sequence[tuple[int, float]]:
        """Moments at which branches may be begun early enough: pairs of the number of words so far,
        and the seconds that are left for branches. 0 words means while the answer plays."""
        latest = self.ends[-1] - EARLY_S
        left = [latest - end - BEHIND_S for end in self.ends[:-2]]
        known = [(count, seconds) for count, seconds in enumerate(left, 1) if seconds > 0]
        return [(0, inf), *known] if latest > 0 else []


@dataclass(frozen=True, slots=True)
class Talked:
    """The results of one talk. Each field is a figure of the record, or a part of one."""

    hit: bool
    """True if all tokens of a branch that was begun early enough were said."""
    guessed: bool
    """True if branches to the texts of `GUESSED` would have been a hit."""
    different: bool
    """True if branches to the texts of `DIFFERENT` would have been a hit."""
    same: bool
    """True if the reply equals the one without branches."""
    passes: int
    """Passes of the target for the reply to the follow-up."""
    plain_passes: int
    """Passes of the target for this reply without branches."""
    begun: int
    """Tokens of branches."""
    accepted: int
    """Tokens of branches that were said."""
    ahead_ms: float
    """Milliseconds of the branches, including the search for the texts that the user may say."""
    processor_ms: float
    """Milliseconds of processor time of the branches and the search."""
    models_ms: float
    """Milliseconds of both models for both replies, without branches."""


def run(command: BenchLlm, progress: Progress) -> Found:
    """Load the target and measure it.

    Raises what loading raises.
    """
    config = chosen(command)
    config = replace(config, branches=config.branches or BRANCHES)
    progress("speaking what is said")
    talks = read_talks(command.prompts or FOLLOW_UPS)
    progress("loading the models")
    llm = SpeculativeLlm(*load_pair(config), config)
    found = list[Talked]()
    for done, talk in enumerate(talks, 1):
        progress(f"talks: {done} of {len(talks)}")
        found.append(_hold(llm, talk))
    record = BenchRecord(
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
    return record, {}


def read_talks(path: Path) -> list[Talk]:
    """Read the talks in a file, and speak each follow-up with a voice of its own.

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


def _hold(llm: SpeculativeLlm, talk: Talk) -> Talked:
    """Hold a talk with and without branches, and return the results."""
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
    """Begin branches from a part of the user's text, for `seconds` of the thread's time."""
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
    """Generate the reply to `text`. Return its first `BEGINNING` tokens."""
    found = [item for item in conversation.reply(text, turn) if isinstance(item, TokenBurst)]
    return tuple(token for item in found for token in item.ids)[:BEGINNING]


def _guesses(
    conversation: SpeculativeConversation, reply: tuple[int, ...], texts: Sequence[str]
) -> bool:
    """Return whether the reply to one of `texts` begins with the same tokens as `reply`."""
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


if __name__ == "__main__":
    sys.exit(carry_out(BenchLlm, run, sys.argv[1:]))
