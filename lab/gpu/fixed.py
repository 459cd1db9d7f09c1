"""Checks that rounds of fixed shape give the tokens of plain rounds, and that attention is right.

Without a GPU the same rounds run as single operations. Only a GPU shows whether they can be
captured.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

from lab.decoding.captures import Captures
from lab.decoding.pair import Pair, without_graphs
from lab.decoding.rounds import strictly
from lab.decoding.synthetic import PAIRS, drawn_pair, synthetic_prompts
from lab.gpu.checks import LOW, Size, counts, tested
from lab.gpu.rows import Row, checked, not_here
from voiceloop.bench.modes import BenchPrompt, OurMode, Verified
from voiceloop.llm.decode.captured import Capture, Plainly
from voiceloop.llm.model.attention import SlotPosition, has_kernel, hidden, masked
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.model.kernels import operations
from voiceloop.llm.model.operations import PLAIN
from voiceloop.settings.config import LlmConfig

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "coupled": {"temperature": 0.9},
    "with penalties": {"repetition_penalty": 1.1, "frequency_penalty": 0.2},
}
"""Settings with which rounds are checked, by the names that the table shows."""
CLOSE, CLOSE_LOW = 1e-9, 0.05
"""Largest differences due to rounding: of logits in double precision, of attention in 16 bits."""


def captured(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that captured rounds give the tokens of other rounds, in double precision."""
    for name, options in WAYS.items():
        pair = _drawn(device, size, None if device.type == "cuda" else Plainly, **options)
        made, answers = pair.captures, _answers(pair, size)
        assert made is not None
        rounds = [one for answer, _ in answers for one in answer]
        plain = _answers(without_graphs(pair), size)
        same = [ids for _, ids in answers] == [ids for _, ids in plain]
        right = same and tested(rounds) and made.replays > 0
        yield checked(
            f"rounds of fixed shape say what plain ones say, {name}", right, counts(rounds)
        )
        if device.type == "cuda":
            yield _really(name, made)
    if device.type != "cuda":
        yield not_here("rounds are captured")


def _really(name: str, made: Captures) -> Row:
    detail = f"{made.graphs} graphs, {made.plain} done plainly, {made.replays} replays"
    return checked(f"rounds are captured, {name}", made.plain == 0, detail)


def waits(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that torch never waits for the device within a draft or a verification."""
    if device.type != "cuda":
        yield not_here("no wait within a round")
        return
    for name, options in WAYS.items():
        rounds = [
            one
            for answer, _ in _answers(_drawn(device, size, strictly, **options), size)
            for one in answer
        ]
        yield checked(f"no wait within a round, {name}", tested(rounds), f"{len(rounds)} rounds")


@torch.inference_mode()
def placed(device: torch.device, size: Size) -> Iterator[Row]:
    """Check that passes of fixed shape give the same logits as passes over a growing cache, for
    random splits of the tokens into passes."""
    pair = _drawn(device, size, None)
    rng, largest, splits = random.Random(0), 0.0, 0
    for prompt in _prompts(pair, size):
        for model in cast("tuple[Decoder, Decoder]", pair.decoders):  # both are whole models
            whole = _split(model, prompt.ids, [len(prompt.ids)], None)
            for _ in range(4):
                parts: list[int] = []
                while sum(parts) < len(prompt.ids):
                    parts.append(min(rng.randint(1, 9), len(prompt.ids) - sum(parts)))
                fixed = _split(model, prompt.ids, parts, Slots(2, 512))
                largest = max(largest, float((whole - fixed).abs().max()))
                splits += 1
    detail = f"double precision, {splits} splits, at most {largest:.1g} apart"
    yield checked("passes of fixed shape give the same logits", largest <= CLOSE, detail)


def _split(model: Decoder, ids: tuple[int, ...], parts: list[int], slots: Slots | None) -> Tensor:
    """Return the logits of all `ids`, fed in `parts`; with `slots`, by passes of fixed shape."""
    cache, at, logits = KvCache(len(ids)), 0, list[Tensor]()
    slot = torch.tensor([1], device=model.device)
    for rows in parts:
        piece = torch.tensor(ids[at : at + rows], device=model.device)
        if slots is None:
            logits.append(model.forward(piece, cache, rows).clone())
        else:
            start = torch.tensor([at], device=model.device)
            place = SlotPosition(slots, slot, start, slots.capacity)
            logits.append(model.forward_at(piece, place, rows).clone())
        at += rows
    return torch.cat(logits)


@torch.inference_mode()
def kernel(device: torch.device) -> Iterator[Row]:
    """Check that the fused attention kernel runs and gives the same result as attention with masks,
    for the heads of each measured model. Report whether the other operations are fused, too."""
    if device.type != "cuda":
        yield not_here("fused attention is attention by masks")
        return
    runs = operations(device, LOW) is not PLAIN
    name = "products, norms, rotations and gates are fused"
    yield checked(name, runs, "Triton's" if runs else "torch's")
    shapes = {
        (shape.heads, shape.key_value_heads, shape.head_dim)
        for _, *both in PAIRS.values()
        for shape in both
    }
    for heads, groups, dim in sorted(shapes):
        name = f"fused attention, heads {heads}/{groups} of {dim}"
        if not has_kernel(device, LOW, heads, groups, dim, None):
            yield Row(name, "masks run: Triton cannot be used, or gives something else")
            continue
        every = [
            _apart(device, (heads, groups, dim), start, rows)
            for start in (1, 63, 64, 150, 1000)
            for rows in (1, 2, 5, 9)
        ]
        apart = float(torch.stack(every).max())  # NaN if one of them is
        yield checked(name, apart < CLOSE_LOW, f"runs, at most {apart:.1g} from masks")


def _apart(device: torch.device, shape: tuple[int, int, int], start: int, rows: int) -> Tensor:
    """Return the largest difference between kernel and masks, for rows from `start` in slot 1."""
    heads, groups, dim = shape
    capacity, generator = 1024, torch.Generator(device).manual_seed(start + rows)
    q, buffer = (
        torch.randn(sizes, generator=generator, device=device, dtype=LOW)
        for sizes in ((rows, heads, dim), (3, capacity, 2 * groups, dim))
    )
    from voiceloop.llm.model.fused import attended

    slot, begun = torch.tensor([[1], [start]], device=device)
    found = attended(q, buffer, slot, begun, None, None)
    places = torch.arange(start + rows, device=device)
    mask = hidden(places[start:], places, None, heads // groups, LOW)
    return (found - masked(q, buffer[1, : start + rows], mask, None)).abs().max()


def _drawn(device: torch.device, size: Size, capture: Capture | None, **options: Any) -> Pair:
    config = LlmConfig(
        max_new_tokens=size.tokens,
        context=512,
        cache_mb=16,
        num_speculative_tokens=4,
        seed=0,
        **options,
    )
    return Pair(*drawn_pair(size.shape, size.vocab, device, torch.float64), config, capture)


def _prompts(pair: Pair, size: Size) -> list[BenchPrompt]:
    texts = synthetic_prompts(size.vocab, size.prompts)
    return [BenchPrompt(text, pair.prompt(text)) for text in texts]


def _answers(pair: Any, size: Size) -> list[tuple[tuple[Verified, ...], tuple[int, ...]]]:
    """Return the rounds and the token ids of the reply to each prompt."""
    mode = OurMode(pair.conversation(), size.tokens)
    answers = [mode.answer(prompt) for prompt in _prompts(pair, size)]
    return [(answer.rounds, answer.ids) for answer in answers]
