"""The ways of answering that are compared: our engine's two, and transformers' `generate`.

Each mode answers one prompt at a time from empty caches and tells how long it took. transformers'
modes are used as well as they can be: token ids ready before the clock starts, no streamer, a
`GenerationConfig` that adds nothing to greedy decoding, inference mode. Our engine keeps what it
has learnt about a good draft length, as it does in a conversation; transformers gets the best
constant one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, StoppingCriteria, StoppingCriteriaList
from transformers.cache_utils import Cache
from transformers.utils import logging as transformers_logging

from voiceloop.bench.figures import Answer, Verified
from voiceloop.config import LlmConfig
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.types import TokenBurst


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked: one user turn."""

    text: str
    ids: tuple[int, ...]
    """Everything up to where the reply begins."""


class Mode(Protocol):
    """One way of answering."""

    def answer(self, prompt: Prompt) -> Answer:
        """The whole reply to `prompt`, as if it were the first of a conversation."""
        ...


class OurMode:
    """Our engine, plain or speculative."""

    def __init__(self, conversation: SpeculativeConversation, max_new_tokens: int) -> None:
        """`max_new_tokens` are those of the conversation."""
        self._conversation = conversation
        self._most = max_new_tokens

    def answer(self, prompt: Prompt) -> Answer:
        """See `Mode.answer`. The time includes tokenising the question and decoding the reply."""
        conversation = self._conversation
        counts = [conversation.counters]
        """At the beginning and after each pass that gave tokens."""
        first: float | None = None
        known = 0
        began = perf_counter()
        for item in conversation.reply(prompt.text, 0):
            if first is None and isinstance(item, TokenBurst):
                first = perf_counter()
            # Counters take some microseconds, and most steps are single draft tokens.
            if len(conversation.ids) > known:
                known = len(conversation.ids)
                counts.append(conversation.counters)
        end = perf_counter()
        counts.append(conversation.counters)  # a pass may give nothing but the reply's end
        ids = conversation.ids
        conversation.close()  # the same turn again begins with empty caches
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
        del rounds[0]  # the first pass is the one over the prompt
        if rounds:
            last, gained = rounds[-1], sum((one.accepted or 0) + 1 for one in rounds)
            rounds[-1] = replace(last, beyond=gained - (tokens - 1))
        return Answer(reply, tokens, end - began, first_s, tuple(rounds), tokens - 1)


class TransformersMode:
    """`generate` of transformers, plain or with an assistant model."""

    def __init__(
        self,
        target: PreTrainedModel,
        assistant: PreTrainedModel | None,
        length: int | None,
        config: LlmConfig,
        eos: frozenset[int],
        tokenizers: tuple[Any, Any] | None = None,
    ) -> None:
        """`length` draft tokens a round, always; None leaves transformers its own defaults.

        Those are 20 draft tokens, fewer where the assistant is not sure of one. `tokenizers` are
        those of target and assistant, where they differ.
        """
        transformers_logging.set_verbosity_error()  # it warns of how it calls itself
        self._target = cast(Any, target)
        self._assistant = cast(Any, assistant)
        self._eos = eos
        self._most = config.max_new_tokens
        ends = sorted(eos)
        common = {"eos_token_id": ends, "pad_token_id": ends[0] if ends else None}
        law: dict[str, Any] = {"do_sample": False}
        if config.temperature > 0:
            law = {"do_sample": True, "temperature": config.temperature, "top_k": config.top_k}
            law |= {"top_p": config.top_p, "min_p": config.min_p or None}
        self._generation = GenerationConfig(max_new_tokens=self._most, **common, **law)
        # What a checkpoint brings along (penalties, a temperature) is not what is measured.
        self._target.generation_config = GenerationConfig(**common)
        drafting: dict[str, Any] = {}
        if length is not None:
            drafting = {
                "num_assistant_tokens": length,
                "num_assistant_tokens_schedule": "constant",
                "assistant_confidence_threshold": 0.0,
            }
        own = common
        self._tokenizers: dict[str, Any] = {}
        if tokenizers is not None:
            ours, theirs = tokenizers
            self._tokenizers = {"tokenizer": ours, "assistant_tokenizer": theirs}
            own = {"eos_token_id": theirs.eos_token_id, "pad_token_id": theirs.eos_token_id}
        self._drafting = GenerationConfig(**own, **drafting)

    def answer(self, prompt: Prompt) -> Answer:
        """See `Mode.answer`.

        The first token is timed in a run of its own that stops there: in the whole reply there is
        neither a streamer nor a stopping rule. With an assistant, passes of the target are counted
        by a hook, which takes some microseconds of each.
        """
        ids = torch.tensor([prompt.ids], device=self._target.device)
        passes: list[tuple[int, int]] = []
        hook = None
        if self._assistant is not None:
            self._assistant.generation_config = self._drafting
            hook = self._target.register_forward_pre_hook(_count(passes), with_kwargs=True)
        began = perf_counter()
        new = self._generate(ids)[0, len(prompt.ids) :].tolist()
        seconds = perf_counter() - began
        if hook is not None:
            hook.remove()
        first = _First()
        began = perf_counter()
        self._generate(ids, stopping_criteria=StoppingCriteriaList([first]))
        end = next((i for i, token in enumerate(new) if token in self._eos), len(new))
        tokens = min(end + 1, len(new))
        first_s = first.at - began
        reply = tuple(new[:end])
        if hook is None:  # the first pass is the one over the prompt
            rounds = (Verified(0, 0),) * (tokens - 1)
            return Answer(reply, tokens, seconds, first_s, rounds, tokens - 1)
        rounds = verified(passes, len(prompt.ids), tokens)
        return Answer(reply, tokens, seconds, first_s, rounds, tokens)

    def _generate(self, ids: Tensor, **options: Any) -> Tensor:
        if self._assistant is not None:
            options |= {"assistant_model": self._assistant, **self._tokenizers}
        with torch.inference_mode():
            return self._target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=self._generation,
                **options,
            )


def verified(passes: list[tuple[int, int]], prompt: int, tokens: int) -> tuple[Verified, ...]:
    """What each pass of assisted generation drafted and accepted.

    `passes` holds for each pass the cached tokens it began with and the tokens it was fed; `prompt`
    and `tokens` are the lengths of the prompt and of the reply. The first pass reads the prompt
    and verifies draft tokens, too; later ones read the last token and the draft tokens.
    """
    # A pass ends with all but the newest token in the cache.
    known = [prompt, *(cached + 1 for cached, _ in passes[1:]), prompt + tokens]
    rounds: list[Verified] = []
    for index, (cached, fed) in enumerate(passes):
        drafted = cached + fed - known[index]
        accepted = known[index + 1] - known[index] - 1
        cut = index == len(passes) - 1 and accepted < drafted
        rounds.append(Verified(drafted, None if cut else accepted))
    return tuple(rounds)


def _count(passes: list[tuple[int, int]]) -> Any:
    def hook(_model: object, _positional: object, named: dict[str, Any]) -> None:
        # Versions of transformers call it by different names.
        cache = next(value for value in named.values() if isinstance(value, Cache))
        cached = cache.get_seq_length()
        passes.append((cached, named["input_ids"].shape[1]))

    return hook


class _First(StoppingCriteria):
    """Stops as soon as there is a token, and notes when that was."""

    at = 0.0

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Any:
        input_ids[0, -1].item()  # waits for the device
        self.at = perf_counter()
        return torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
