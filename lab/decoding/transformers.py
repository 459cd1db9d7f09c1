"""A decoding mode that uses transformers' `generate`, for comparison with our engine.

It is as fast as `generate` can be: token ids are ready before the clock starts, there is no
streamer, the `GenerationConfig` adds nothing to greedy decoding, torch is in inference mode, and
the draft length is the best constant one.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, cast

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, StoppingCriteria, StoppingCriteriaList
from transformers.cache_utils import Cache
from transformers.utils import logging as transformers_logging

from voiceloop.bench.modes import BenchPrompt, MeasuredReply, Verified
from voiceloop.settings.config import LlmConfig


class TransformersMode:
    """A mode that uses transformers' `generate`, plain or with an assistant model."""

    def __init__(
        self,
        target: PreTrainedModel,
        assistant: PreTrainedModel | None,
        length: int | None,
        config: LlmConfig,
        eos: frozenset[int],
        tokenizers: tuple[Any, Any] | None = None,
    ) -> None:
        """Draft `length` tokens in every round; None leaves transformers its own defaults.

        These are 20 draft tokens, or fewer if the assistant is not sure of one. `tokenizers` are
        those of target and assistant, if they differ.
        """
        transformers_logging.set_verbosity_error()  # it warns of its own calls
        self._target = cast(Any, target)
        self._assistant = cast(Any, assistant)
        self._eos = eos
        self._most = config.max_new_tokens
        ends = sorted(eos)
        common = {"eos_token_id": ends, "pad_token_id": ends[0] if ends else None}
        drawing: dict[str, Any] = {"do_sample": False}
        if config.temperature > 0:
            drawing = {"do_sample": True, "temperature": config.temperature, "top_k": config.top_k}
            drawing |= {"top_p": config.top_p, "min_p": config.min_p or None}
        self._generation = GenerationConfig(max_new_tokens=self._most, **common, **drawing)
        # Defaults of a checkpoint (penalties, a temperature) must not change the measurement.
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

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        """Generate the whole reply to `prompt`.

        The first token is timed in a run of its own that stops there, so that the whole reply needs
        neither a streamer nor a stopping rule. With an assistant, a hook counts the passes of the
        target, which adds some microseconds to each.
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
            return MeasuredReply(reply, tokens, seconds, first_s, rounds, tokens - 1)
        rounds = verified(passes, len(prompt.ids), tokens)
        return MeasuredReply(reply, tokens, seconds, first_s, rounds, tokens)

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
    """Return how many draft tokens each pass of assisted generation verified and accepted.

    `passes` has for each pass the number of cached tokens at its beginning and of tokens that it
    was fed. `prompt` and `tokens` are the lengths of the prompt and of the reply. The first pass
    reads the prompt and verifies draft tokens, too; later ones read the last token and the draft
    tokens.
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
        # Versions of transformers name the cache differently.
        cache = next(value for value in named.values() if isinstance(value, Cache))
        cached = cache.get_seq_length()
        passes.append((cached, named["input_ids"].shape[1]))

    return hook


class _First(StoppingCriteria):
    """A criterion that stops at the first token, and records its time."""

    at = 0.0

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Any:
        input_ids[0, -1].item()  # waits for the device
        self.at = perf_counter()
        return torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
