"""What the draft learns from: the target's own replies, with the target's distributions.

Knows the target's weights and the domain; the training itself is `llm.train`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F

from models.train.domain import Message, dialogue
from models.train.llm_data import LONGEST, Batch, Encoder, Row, as_written, batches, bucket, collate
from models.train.llm_model import Shape, Weights, generate, hidden

LIMIT = 120
"""Tokens in the longest reply."""
TOP = 16
"""Tokens of each of the target's distributions that are kept."""
SAMPLED = 0.2
"""Share of the replies that are sampled rather than greedy."""


def answered(
    weights: Weights, shape: Shape, encoder: Encoder, rng: random.Random, count: int
) -> list[Row]:
    """Training dialogues whose last reply is the target's."""
    asked: list[list[Message]] = []
    while len(asked) < count:
        messages = as_written(dialogue(rng), rng)
        ends = [i for i, message in enumerate(messages) if message.role == "assistant"]
        if ends:
            asked.append(messages[: rng.choice(ends)])
    prompts = [row for row in map(encoder.dialogue, asked) if len(row.ids) < LONGEST - 200]
    prompts.sort(key=lambda row: len(row.ids))
    head = [encoder.start, *encoder.roles["assistant"]]
    rows: list[Row] = []
    for i in range(0, len(prompts), 128):
        part = prompts[i : i + 128]
        heat = 0.8 if rng.random() < SAMPLED else 0.0
        replies = generate(
            weights, shape, [row.ids + head for row in part], encoder.end, LIMIT,
            temperature=heat, seed=rng.randrange(1 << 30),
        )  # fmt: skip
        for row, reply in zip(part, replies, strict=True):
            if len(reply) == LIMIT:
                continue
            tail = [*reply, encoder.end]
            rows.append(
                Row(
                    [*row.ids, *head, *tail, encoder.line],
                    [*row.weights, *[0.0] * len(head), *[1.0] * len(tail), 0.0],
                    [*row.kinds, *[0] * len(head), *[3] * len(tail), 0],
                )
            )
    return rows


def replies_only(batch: Batch) -> Batch:
    """`batch` without the loss on users' words: a draft drafts nothing but replies."""
    chosen = batch.kinds == 3
    return replace(
        batch,
        where=batch.where[chosen],
        targets=batch.targets[chosen],
        shares=batch.shares[chosen],
        weights=batch.weights[chosen],
        kinds=batch.kinds[chosen],
    )


@torch.no_grad()
def soften(weights: Weights, shape: Shape, batch: Batch) -> Batch:
    """`batch` with the target's likeliest next tokens in place of the actual one."""
    states = hidden(weights, shape, batch.ids)[batch.where]
    logits = F.linear(states, weights["model.embed_tokens.weight"]).float()
    shares, targets = torch.softmax(logits, -1).topk(TOP)
    shares /= shares.sum(-1, keepdim=True)
    return replace(batch, rows=[], targets=targets, shares=shares)


def lessons(
    weights: Weights, shape: Shape, encoder: Encoder, seconds: float, tokens: int, seed: int
) -> list[Batch]:
    """As many batches as the target can make in `seconds`.

    One half are its own replies; in the other, which comes five times as fast, it comments on the
    domain's.
    """
    rng = random.Random(f"distill {seed}")
    fresh = batches(encoder, rng, tokens)
    waiting: dict[int, list[Row]] = {}
    made: list[Batch] = []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        for row in answered(weights, shape, encoder, rng, 512):
            length = bucket(len(row.ids))
            waiting.setdefault(length, []).append(row)
            if len(waiting[length]) * length > tokens - length:
                batch = replies_only(collate(waiting.pop(length), length))
                both = batch, replies_only(next(fresh))
                made += [soften(weights, shape, each) for each in both]
    return made


def course(made: list[Batch], encoder: Encoder, tokens: int, seed: int) -> Iterator[Batch]:
    """The lessons again and again in any order, in turn with fresh dialogues.

    Lessons cost the target's time, fresh dialogues nothing, and what the target says differs from
    them in few places.
    """
    rng = random.Random(f"course {seed}")
    fresh = batches(encoder, rng, tokens)
    while True:
        for batch in rng.sample(made, len(made)):
            yield batch
            yield replies_only(next(fresh))
