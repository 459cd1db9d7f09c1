"""Checks that the engine is exact on a device.

The models have random weights. Their variance is so large that every token depends on all tokens
before it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from lab.decoding.pair import Subjects, load_subjects, subjects
from lab.decoding.synthetic import Shape, drawn_pair, synthetic_prompts, vocabulary
from lab.decoding.transformers import TransformersMode
from lab.gpu.rows import Row, checked
from voiceloop.bench.modes import BenchPrompt, OurMode, Verified, acceptance
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.settings.config import LlmConfig

SMALL = Shape(256, 512, 4, 8, 4, 32)
VOCAB = 4096
BLOCKS = (2, 3, 5, 9)
"""Numbers of rows of the passes that are compared with passes of one row."""
LOW = torch.bfloat16


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the models and of the work in the checks."""

    shape: Shape = SMALL
    vocab: int = VOCAB
    prompts: int = 4
    tokens: int = 48
    synthetic: str = "120m+8m"


LITTLE = Size(Shape(48, 64, 2, 4, 2, 12), 512, prompts=2, tokens=24, synthetic="tiny")
"""The size for a CPU, which would take minutes for what a GPU does in seconds."""


def exact_text(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that speculative text equals plain text, and that greedy plain text equals the text of
    transformers. In double precision rounding cannot change which logit is the largest."""
    for temperature in (0.0, 0.9):
        config = LlmConfig(
            temperature=temperature,
            seed=0,
            max_new_tokens=size.tokens,
            context=512,
            num_speculative_tokens=4,
        )
        both, prompts = drawn(device, torch.float64, size, config)
        plain = OurMode(both.pair.plain().conversation(), size.tokens)
        own = OurMode(both.pair.conversation(), size.tokens)
        answers = [(plain.answer(prompt), own.answer(prompt)) for prompt in prompts]
        rounds = [one for _, answer in answers for one in answer.rounds]
        same = all(one.ids == other.ids for one, other in answers)
        name = f"speculative text equals plain text at temperature {temperature:g}"
        yield checked(name, same and tested(rounds), f"double precision, {counts(rounds)}")
        if temperature == 0:
            theirs = TransformersMode(both.target, None, None, config, both.pair.eos)
            same = all(
                theirs.answer(prompt).ids == answer.ids
                for prompt, (answer, _) in zip(prompts, answers, strict=True)
            )
            yield checked(
                "plain text equals that of transformers", same, "double precision, greedy"
            )


def interrupted(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that a reply that was broken off, after any step, does not change the next reply."""
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = drawn(device, torch.float64, size, config)
    first, second = prompts[:2]
    fresh = both.pair.conversation()
    deque(fresh.reply(second.text, 0), maxlen=0)
    wrong = 0
    for steps in range(1, 12):
        conversation = both.pair.conversation()
        reply = conversation.reply(first.text, 0)
        for _ in range(steps):
            next(reply)
        reply.close()
        deque(conversation.reply(second.text, 0), maxlen=0)
        wrong += conversation.ids != fresh.ids
        conversation.close()
    yield checked("a reply broken off after any step leaves no trace", wrong == 0, f"{wrong} of 11")


@torch.inference_mode()
def rounding(device: torch.device, size: Size) -> Iterator[Row]:
    """Check in low precision that every token is the likeliest one, up to rounding.

    In low precision the number of rows in a pass changes logits, so texts need not be equal. Let e
    be the largest change of any logit between passes of one row and of several rows. Then the logit
    of each token must be at most 2e below the largest: the token's logit may be e too high, and the
    largest e too low. This check is meaningful only if most second largest logits are further
    below.
    """
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = drawn(device, LOW, size, config)
    target, _ = both.pair.decoders
    own = OurMode(both.pair.conversation(), size.tokens)
    largest, short, near, tokens = 0.0, 0.0, 0, 0
    rounds: list[Verified] = []
    for prompt in prompts:
        answer = own.answer(prompt)
        rounds += answer.rounds
        one = teacher_forced(target, prompt.ids, answer.ids, 1)
        for rows in BLOCKS:
            block = teacher_forced(target, prompt.ids, answer.ids, rows)
            largest = max(largest, float((one - block).abs().max()))
        said = one.gather(1, torch.tensor(answer.ids, device=one.device).unsqueeze(1)).squeeze(1)
        top = one.topk(2).values
        short = max(short, float((top[:, 0] - said).max()))
        near += int((top[:, 0] - top[:, 1] <= 2 * largest).sum())
        tokens += len(answer.ids)
    detail = f"{LOW}, e = {largest:.2g}, at most {short:.2g} below, {near} of {tokens} undecided"
    passed = short <= 2 * largest and 2 * near < tokens and tested(rounds)
    yield checked("every token is the likeliest but for rounding", passed, detail)


@torch.inference_mode()
def accuracy(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that our passes are as close to single precision as transformers' own."""
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = drawn(device, LOW, size, config)
    exact = copy.deepcopy(both.target).float()
    ours = theirs = 0.0
    for prompt in prompts:
        ids = torch.tensor([prompt.ids], device=device)
        truth = _logits(exact, ids)
        got = teacher_forced(both.pair.decoders[0], prompt.ids[:1], prompt.ids[1:], 4)
        ours += float((got.float() - truth[:-1, : got.shape[1]]).square().mean())
        theirs += float((_logits(both.target, ids).float() - truth).square().mean())
    detail = f"{LOW}, mean square error {ours:.2g}, transformers' {theirs:.2g}"
    yield checked("our passes are as exact as transformers'", ours <= 2 * theirs, detail)


def oracle(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that the synthetic pair gives the same text in all modes and the chosen acceptance."""
    chosen = 0.7
    config = LlmConfig(
        max_new_tokens=size.tokens,
        num_speculative_tokens=4,
        device=cast(Any, device.type),
        dtype="bfloat16",
    )
    both = load_subjects(config, size.synthetic, chosen)
    texts = synthetic_prompts(vocabulary(size.synthetic), 3 * size.prompts)
    prompts = [BenchPrompt(text, both.pair.prompt(text)) for text in texts]
    plain = OurMode(both.pair.plain().conversation(), size.tokens)
    own = OurMode(both.pair.conversation(), size.tokens)
    theirs = TransformersMode(both.target, both.draft, 3, config, both.pair.eos)
    answers = [[mode.answer(prompt) for mode in (plain, own, theirs)] for prompt in prompts]
    same = all(one.ids == other.ids for one, *others in answers for other in others)
    yield checked("all modes speak the synthetic pair's text", same, f"{LOW}")
    for place, name in ((1, "our"), (2, "transformers'")):
        rounds = [one for answer in answers for one in answer[place].rounds]
        share = acceptance(rounds) or 0.0
        tested = sum(
            min(one.accepted + 1, one.drafted) for one in rounds if one.accepted is not None
        )
        allowed = 4 * (chosen * (1 - chosen) / max(1, tested)) ** 0.5
        detail = f"{share:.3f} of {tested} guesses, asked for {chosen:g}"
        yield checked(
            f"{name} rounds see the chosen acceptance", abs(share - chosen) <= allowed, detail
        )


def teacher_forced(
    model: Decoder, prompt: Sequence[int], reply: Sequence[int], rows: int
) -> Tensor:
    """Return the logits that predict each token of `reply`, [len(reply), vocab]. Each pass has
    `rows` rows."""
    cache = KvCache(len(prompt) + len(reply) + rows)
    deque(feed(model, cache, prompt[:-1]), maxlen=0)
    fed = [prompt[-1], *reply[:-1]]
    parts: list[Tensor] = []
    for start in range(0, len(fed), rows):
        block = torch.tensor(fed[start : start + rows], device=model.device)
        parts.append(model.forward(block, cache, len(block)).clone())
    return torch.cat(parts)


def drawn(
    device: torch.device, dtype: torch.dtype, size: Size, config: LlmConfig
) -> tuple[Subjects, list[BenchPrompt]]:
    """Draw a pair of models, and make prompts for it."""
    both = subjects(*drawn_pair(size.shape, size.vocab, device, dtype), config)
    texts = synthetic_prompts(size.vocab, size.prompts)
    return both, [BenchPrompt(text, both.pair.prompt(text)) for text in texts]


def _logits(model: PreTrainedModel, ids: Tensor) -> Tensor:
    called: Any = model
    return called(ids).logits[0]


def tested(rounds: Sequence[Verified]) -> bool:
    """Return whether some draft tokens were accepted and some rejected, as checks need both."""
    drafted = sum(one.drafted for one in rounds)
    return 0 < sum(one.accepted or 0 for one in rounds) < drafted


def counts(rounds: Sequence[Verified]) -> str:
    """Return how many draft tokens were accepted, in words."""
    drafted = sum(one.drafted for one in rounds)
    return f"{sum(one.accepted or 0 for one in rounds)} of {drafted} guesses accepted"
