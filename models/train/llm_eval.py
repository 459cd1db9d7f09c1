"""Measures the language models: exact replies, declines, acceptance, end of turn, perplexity.

This module needs only weights and the domain's held-out split; it knows nothing of training.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from models.train.domain import (
    DECLINES,
    Message,
    contrast_pairs,
    dialogue,
    factual,
    out_of_domain,
    utterance,
)
from models.train.llm_data import KINDS, Encoder, Row, collate
from models.train.llm_model import Shape, Weights, generate, hidden

Model = tuple[Weights, Shape]
Figures = dict[str, float]

LABELS = {
    "exact": "Exact replies to 200 held-out phrasings of factual questions",
    "contrast_pairs": "50 contrast pairs (the same sentence, another slot): both exact",
    "declined": "50 out-of-domain questions: declined",
    "acceptance": "Acceptance on held-out greedy dialogues, draft length 4",
    "tokens_per_round": "Tokens per draft-verify round",
    "perplexity_user": "Perplexity of a user's words",
    "perplexity_end_of_turn": "Perplexity of a user's end of turn, after the final mark",
    "perplexity_assistant": "Perplexity of replies",
    "auc_end": "Finished or unfinished question, by P(end of turn): area under the curve",
    "auc_end_or_mark": "The same, by P(end of turn) + P(final mark)",
}
SHARES = ("exact", "contrast_pairs", "declined", "acceptance")


def replies(model: Model, encoder: Encoder, questions: Sequence[str]) -> list[str]:
    """Return the greedy reply to each question, each as the first in a conversation."""
    found: list[str] = []
    for i in range(0, len(questions), 64):
        prompts = [encoder.prompt([Message("user", text)]) for text in questions[i : i + 64]]
        ids = generate(*model, prompts, encoder.end)
        found += [str(encoder.tokenizer.decode(reply)) for reply in ids]
    return found


def exact(model: Model, encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> float:
    """Return the share of questions that are answered in exactly the right words."""
    got = replies(model, encoder, [question for question, _ in pairs])
    return sum(one == right for one, (_, right) in zip(got, pairs, strict=True)) / len(pairs)


def both_right(model: Model, encoder: Encoder) -> float:
    """Return the share of contrast pairs with exact answers to both questions."""
    questions = [question for pair in contrast_pairs() for question in pair]
    got = replies(model, encoder, [question for question, _ in questions])
    right = [one == reply for one, (_, reply) in zip(got, questions, strict=True)]
    return sum(a and b for a, b in zip(right[::2], right[1::2], strict=True)) / (len(right) / 2)


def declined(model: Model, encoder: Encoder) -> float:
    """Return the share of out-of-domain questions that get one of the declining replies."""
    got = replies(model, encoder, out_of_domain("heldout"))
    return sum(reply in DECLINES for reply in got) / len(got)


def held_out_dialogues(count: int) -> list[list[Message]]:
    """Return held-out dialogues, the same at every call."""
    rng = random.Random("held-out dialogues")
    return [dialogue(rng, "heldout") for _ in range(count)]


@torch.no_grad()
def next_logits(model: Model, rows: Sequence[Row]) -> list[torch.Tensor]:
    """Return for each row the logits [length, vocab] of the token after each of its tokens."""
    weights, shape = model
    found: list[torch.Tensor] = []
    for i in range(0, len(rows), 32):
        part = list(rows[i : i + 32])
        length = max(len(row.ids) for row in part)
        states = hidden(weights, shape, collate(part, length).ids)
        logits = F.linear(states, weights["model.embed_tokens.weight"]).view(len(part), length, -1)
        found += [logits[j, : len(row.ids)] for j, row in enumerate(part)]
    return found


def acceptance(
    target: Model, draft: Model, encoder: Encoder, *, length: int = 4, dialogues: int = 150
) -> Figures:
    """Return acceptance and tokens per round of greedy speculative decoding, without running it.

    After the target's own tokens the draft proposes its likeliest next tokens. So one pass of the
    draft over each reply of the target shows which would have been accepted. The first token of a
    reply comes from the prefill and is not drafted; the token that ends the reply is.
    """
    prompts = [
        encoder.prompt(messages[:i])
        for messages in held_out_dialogues(dialogues)
        for i, message in enumerate(messages)
        if message.role == "assistant"
    ]
    rows: list[Row] = []
    for i in range(0, len(prompts), 64):
        part = prompts[i : i + 64]
        for prompt, reply in zip(part, generate(*target, part, encoder.end), strict=True):
            ids = [*prompt, *reply, encoder.end]
            rows.append(Row(ids, [0.0] * len(prompt) + [1.0] * (len(reply) + 1), [0] * len(ids)))
    tested = accepted = rounds = tokens = 0
    for row, logits in zip(rows, next_logits(draft, rows), strict=True):
        guesses = [0, *logits.argmax(-1).tolist()]
        at = int(len(row.ids) - sum(row.weights)) + 1
        while at < len(row.ids):
            rounds += 1
            for position in range(at, min(at + length, len(row.ids))):
                tested += 1
                if guesses[position] != row.ids[position]:
                    break
                accepted += 1
                at += 1
            at += 1
        tokens += int(sum(row.weights)) - 1
    return {"acceptance": accepted / tested, "tokens_per_round": tokens / rounds}


def perplexity(model: Model, encoder: Encoder, dialogues: int = 200) -> Figures:
    """Return the perplexity on held-out dialogues, for each kind of token."""
    rows = [encoder.dialogue(messages) for messages in held_out_dialogues(dialogues)]
    sums, counts = [0.0] * len(KINDS), [0] * len(KINDS)
    for row, logits in zip(rows, next_logits(model, rows), strict=True):
        losses = F.cross_entropy(logits[:-1], torch.tensor(row.ids[1:]), reduction="none")
        for kind, loss in zip(row.kinds[1:], losses.tolist(), strict=True):
            sums[kind] += loss
            counts[kind] += 1
    names = (f"perplexity_{kind.replace(' ', '_')}" for kind in KINDS)
    return {
        name: math.exp(total / count)
        for name, total, count in zip(names, sums, counts, strict=True)
        if name != "perplexity_none"
    }


def end_of_turn(model: Model, encoder: Encoder, count: int = 400) -> Figures:
    """Return areas under the ROC curve for the detection of finished questions.

    Finished questions are held-out utterances without their final mark. Unfinished ones are the
    same utterances, cut after a random word. They are scored by the probability of the end-of-turn
    token, alone and with that of a final mark.
    """
    rng = random.Random("end of turn")
    texts: list[str] = []
    while len(texts) < 2 * count:
        words = utterance(rng, "heldout").rstrip(".?!").split()
        if len(words) > 2:
            cut = words[: rng.randint(1, len(words) - 1)]
            texts += [" ".join(words), " ".join(cut).rstrip(",")]
    rows = [encoder.message(Message("user", text, complete=False)) for text in texts]
    marks = [encoder.encode(mark)[0] for mark in ".?!"]
    last = [torch.softmax(logits[-1], -1) for logits in next_logits(model, rows)]
    alone = [float(row[encoder.end]) for row in last]
    together = [float(row[[encoder.end, *marks]].sum()) for row in last]
    return {
        "auc_end": auc(alone[::2], alone[1::2]),
        "auc_end_or_mark": auc(together[::2], together[1::2]),
    }


def auc(high: Sequence[float], low: Sequence[float]) -> float:
    """Return the probability that one of `high` exceeds one of `low`; ties count half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in high for b in low)
    return wins / (len(high) * len(low))


def evaluate(target: Model, draft: Model | None, encoder: Encoder) -> dict[str, Figures]:
    """Return all figures of the model cards, by the name of the model."""
    figures = {
        "llm-target": {
            "exact": exact(target, encoder, factual("heldout")),
            "contrast_pairs": both_right(target, encoder),
            "declined": declined(target, encoder),
            **perplexity(target, encoder),
            **end_of_turn(target, encoder),
        }
    }
    if draft:
        figures["llm-draft"] = {
            **acceptance(target, draft, encoder),
            "exact": exact(draft, encoder, factual("heldout")),
            "perplexity_assistant": perplexity(draft, encoder)["perplexity_assistant"],
        }
    return figures


def table(figures: Figures) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| measured on held-out data | |", "|---|---|"]
    for name, value in figures.items():
        text = f"{value:.1%}" if name in SHARES else f"{value:.3f}"
        lines.append(f"| {LABELS[name]} | {text} |")
    return "\n".join(lines)


def fill(card: Path, figures: Figures) -> None:
    """Put the figures into a model card, between its two marks."""
    begin, end = "<!-- figures -->", "<!-- /figures -->"
    head, _, rest = card.read_text().partition(begin)
    tail = rest.partition(end)[2]
    card.write_text(f"{head}{begin}\n{table(figures)}\n{end}{tail}")
