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
from models.train.llm_data import LONGEST, Batch, Encoder, Row, as_spoken, bucket, collate
from models.train.llm_model import Shape, Weights, generate, hidden

TOP = 16
"""Tokens of each of the target's distributions that are kept."""
SAMPLED = 0.2
"""Share of the replies that are sampled rather than greedy."""
USER = 0.25
"""How much less a user's words count than for the target: the draft drafts replies only."""


def answered(
    weights: Weights, shape: Shape, encoder: Encoder, rng: random.Random, count: int
) -> list[Row]:
    """Training dialogues whose last reply is the target's."""
    asked: list[list[Message]] = []
    while len(asked) < count:
        messages = as_spoken(dialogue(rng), rng)
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
            weights, shape, [row.ids + head for row in part], encoder.end,
            temperature=heat, seed=rng.randrange(1 << 30),
        )  # fmt: skip
        for row, reply in zip(part, replies, strict=True):
            tail = [*reply, encoder.end]
            rows.append(
                Row(
                    [*row.ids, *head, *tail, encoder.line],
                    [*row.weights, *[0.0] * len(head), *[1.0] * len(tail), 0.0],
                    [*row.kinds, *[0] * len(head), *[3] * len(tail), 0],
                )
            )
    return rows


@torch.no_grad()
def soften(weights: Weights, shape: Shape, batch: Batch) -> Batch:
    """`batch` with the target's likeliest next tokens in place of the actual one."""
    states = hidden(weights, shape, batch.ids)[batch.where]
    logits = F.linear(states, weights["model.embed_tokens.weight"]).float()
    shares, targets = torch.softmax(logits, -1).topk(TOP)
    counts = torch.where(batch.kinds == 3, 1.0, USER)
    return replace(
        batch,
        rows=[],
        targets=targets,
        shares=shares / shares.sum(-1, keepdim=True),
        weights=batch.weights * counts,
    )


def lessons(
    weights: Weights, shape: Shape, encoder: Encoder, seconds: float, tokens: int, seed: int
) -> list[Batch]:
    """As many batches as the target can make in `seconds`."""
    rng = random.Random(f"distill {seed}")
    waiting: dict[int, list[Row]] = {}
    made: list[Batch] = []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        for row in answered(weights, shape, encoder, rng, 1024):
            length = bucket(len(row.ids))
            waiting.setdefault(length, []).append(row)
            if len(waiting[length]) * length > tokens - length:
                batch = collate(waiting.pop(length), length)
                made.append(soften(weights, shape, batch))
    return made


def forever(batches: list[Batch], seed: int) -> Iterator[Batch]:
    """The batches again and again, each time in another order."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(batches, len(batches))
