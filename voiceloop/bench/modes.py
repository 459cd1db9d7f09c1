"""Times the replies of decoding modes that answer the same prompts in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import Protocol

from voiceloop.bench.figures import MeasuredReply, Verified
from voiceloop.bench.rotation import rotation
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.types import TokenBurst

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A prompt: one turn of the user."""

    text: str
    ids: tuple[int, ...]
    """Token ids of the conversation up to where the reply begins."""


class DecodingMode(Protocol):
    """A way of generating replies."""

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        """Generate the whole reply to `prompt`, as the first turn of a conversation."""
        ...


class OurMode:
    """A decoding mode of voiceloop's own engine, with or without a draft."""

    def __init__(self, conversation: SpeculativeConversation, max_new_tokens: int) -> None:
        """Use a conversation whose replies have at most `max_new_tokens` tokens."""
        self._conversation = conversation
        self._most = max_new_tokens

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        """Generate the whole reply. Its time includes tokenising the prompt."""
        conversation = self._conversation
        counts = [conversation.counters]
        """The counters at the beginning, and those after each pass that gave tokens."""
        first: float | None = None
        known = 0
        began = perf_counter()
        for item in conversation.reply(prompt.text, 0):
            if first is None and isinstance(item, TokenBurst):
                first = perf_counter()
            # Most steps only propose a draft token, and reading counters takes microseconds.
            if len(conversation.ids) > known:
                known = len(conversation.ids)
                counts.append(conversation.counters)
        end = perf_counter()
        counts.append(conversation.counters)  # the last pass may give only the reply's end
        ids = conversation.ids
        conversation.close()  # so that the next reply begins with empty caches
        assert ids[: len(prompt.ids)] == prompt.ids, "both engines must see the same prompt"
        reply = ids[len(prompt.ids) :]
        tokens = min(len(reply) + 1, self._most)
        first_s = (end if first is None else first) - began
        rounds = [
            Verified(
                after.drafted - before.drafted,
                after.accepted - before.accepted,
                tested=after.tested - before.tested,
            )
            for before, after in pairwise(counts)
            if after.target_passes > before.target_passes
        ]
        del rounds[0]  # the first pass reads the prompt
        if rounds:
            last, gained = rounds[-1], sum((one.accepted or 0) + 1 for one in rounds)
            rounds[-1] = replace(last, beyond=gained - (tokens - 1))
        return MeasuredReply(reply, tokens, end - began, first_s, tuple(rounds), tokens - 1)


def interleave(
    modes: Mapping[str, DecodingMode],
    prompts: Sequence[BenchPrompt],
    limit_s: float,
    progress: Progress,
) -> dict[str, list[MeasuredReply]]:
    """Answer every prompt in every mode, in rotation. No prompt is begun that would probably end
    later than `limit_s` seconds from now."""
    answers: dict[str, list[MeasuredReply]] = {name: [] for name in modes}
    for done, order in rotation([*modes], len(prompts), limit_s):
        progress(f"answering in {len(modes)} modes: {done + 1} of {len(prompts)}")
        for name in order:
            answers[name].append(modes[name].answer(prompts[done]))
    return answers
