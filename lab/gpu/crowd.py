"""Measures replies after long prompts, without a slot, and of several conversations by turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from lab.decoding.pair import Pair
from lab.decoding.synthetic import synthetic_prompts
from lab.gpu.rows import Row, not_here
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.types import TokenBurst

LENGTHS = (60, 512, 1900)
"""Lengths of prompts, in words. Each word is one token."""
CROWDS = (1, 2, 8)
"""Numbers of conversations that reply at the same time, one step of each after the other."""


def crowded(pair: Pair, name: str, vocab: int) -> Iterator[Row]:
    """Yield the rows about `pair`, whose vocabulary has `vocab` tokens."""
    for words in LENGTHS:
        (text,) = synthetic_prompts(vocab, 1, words)
        talks = [pair.conversation() for _ in range(2)]
        taken = [token_ms([talk], text) for talk in talks]  # the first one captures
        for talk in talks:
            talk.close()
        yield Row(f"{name}: a token after {words} tokens", f"{taken[-1]:.2f} ms")
    (text,) = synthetic_prompts(vocab, 1, LENGTHS[0])
    for count in CROWDS:
        talks = [pair.conversation() for _ in range(count)]
        each = token_ms(talks, text)
        yield Row(f"{name}: {count} at a time", f"{1000 / each:.0f} tokens/s of all together")
        for talk in talks:
            talk.close()
    if pair.captured is None:
        yield not_here(f"{name}: a conversation without a slot")
        return
    talks = [pair.conversation() for _ in range(pair.captured.work.target.slots.spare + 1)]
    placed = [token_ms([talk], text) for talk in talks]
    last = talks[-1].counters
    yield Row(
        f"{name}: a conversation without a slot",
        f"{placed[-1]:.2f} ms a token, {min(placed):.2f} with one;"
        f" {last.without_slot} of {last.target_passes} passes",
    )


def token_ms(talks: Sequence[SpeculativeConversation], text: str) -> float:
    """Let all `talks` reply to `text`, by turns. Return the milliseconds for each token after the
    first one of each."""
    steps = [talk.reply(text, 0) for talk in talks]
    for one in steps:
        next(item for item in one if isinstance(item, TokenBurst))
    began, tokens = perf_counter(), 0
    while steps:
        for one in list(steps):
            try:
                item = next(one)
            except StopIteration:
                steps.remove(one)
                continue
            tokens += len(item.ids) if isinstance(item, TokenBurst) else 0
    taken = 1000 * (perf_counter() - began)
    return taken / max(1, tokens)
