"""Trains the starter language models: tokenizer, target and draft.

    python -m models.train.llm STAGE [--work DIR] [--seconds N] [--seed N] [--start DIR --rate R]

Stages, in order: `tokenizer`, `target`, `distill`, `export`, `evaluate`. Everything but the
exported models stays in the work folder. `target` and `distill` resume where they were stopped.
With `--start` they begin with exported models instead of random weights.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from models.train import llm_distill, llm_eval, llm_export
from models.train.domain import factual
from models.train.llm_data import KINDS, Batch, Encoder, batches, load_tokenizer, train_tokenizer
from models.train.llm_model import (
    PLAIN,
    Pieces,
    Shape,
    Weights,
    compiled,
    cross_entropy,
    hidden,
    initial,
)

TARGET = Shape(vocab=0, width=512, layers=5, heads=8, ff=1024)
DRAFT = Shape(vocab=0, width=128, layers=2, heads=4, ff=384)
TOKENS = 4096
"""Tokens in a batch of the target. A batch of the draft has half as many, so it has more steps."""


class Optimizer:
    """Muon on the projections, AdamW on the embedding and the norms; one learning rate for both."""

    def __init__(self, weights: Weights, rate: float) -> None:
        inner = [w for name, w in weights.items() if w.ndim == 2 and "embed" not in name]
        outer = [w for name, w in weights.items() if w.ndim != 2 or "embed" in name]
        self.rate = rate
        self.parts: tuple[Any, Any] = (
            torch.optim.Muon(inner, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(outer, lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        )

    def step(self, scale: float) -> None:
        """Apply the gradients at `scale` times the learning rate."""
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = self.rate * scale
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self) -> list[Any]:
        """Return the state for `restore`."""
        return [part.state_dict() for part in self.parts]

    def restore(self, state: list[Any]) -> None:
        """Continue from a saved state."""
        for part, saved in zip(self.parts, state, strict=True):
            part.load_state_dict(saved)


def save(path: Path, value: object) -> None:
    """Save `value` atomically: a reader sees a whole file or none, also after a crash."""
    torch.save(value, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def gradients(
    weights: Weights, shape: Shape, batch: Batch, pieces: Pieces, step: int
) -> torch.Tensor:
    """Set the gradient of each weight, computed in bfloat16, and return the loss of each position.

    Raises FloatingPointError if the loss is not finite.
    """
    copies = {key: w.detach().bfloat16().requires_grad_() for key, w in weights.items()}
    states = hidden(copies, shape, batch.ids, pieces)[batch.where]
    embedding = copies["model.embed_tokens.weight"]
    losses = cross_entropy(states, embedding, batch.targets, batch.shares, batch.weights)
    loss = losses.sum()
    if not loss.isfinite():
        raise FloatingPointError(f"the loss of step {step} is {loss.item()}")
    loss.backward()
    for key, weight in weights.items():
        weight.grad = copies[key].grad.float()  # type: ignore[union-attr]
    return losses


def train(
    name: str,
    shape: Shape,
    source: Iterator[Batch],
    encoder: Encoder,
    args: argparse.Namespace,
    rate: float,
    pieces: Pieces,
) -> Weights:
    """Train the model `name` for `args.seconds` of running time, and return its weights.

    It resumes from its checkpoint if there is one; earlier runs count towards the time.
    """
    path = Path(args.work) / f"{name}.pt"
    if args.start:
        weights, _ = llm_export.read(args.start / f"llm-{name}")
    else:
        weights = initial(shape, args.seed)
    step, tokens, elapsed = 0, 0, 0.0
    saved = torch.load(path) if path.exists() else None
    if saved:
        weights = saved["weights"]
        step, tokens, elapsed = (saved[key] for key in ("step", "tokens", "elapsed"))
    for weight in weights.values():
        weight.requires_grad_()
    optimizer = Optimizer(weights, rate * args.rate)
    if saved:
        optimizer.restore(saved["optimizer"])
    sums, counts = torch.zeros(len(KINDS)), torch.zeros(len(KINDS))
    started = time.monotonic() - elapsed
    next_log, next_check = elapsed + 30, elapsed + 240

    def checkpoint() -> None:
        plain = {key: weight.detach() for key, weight in weights.items()}
        progress = {"step": step, "tokens": tokens, "elapsed": elapsed}
        save(path, {"weights": plain, "optimizer": optimizer.state(), **progress})
        if sys.platform == "linux":  # batches of many shapes leave gigabytes of unused heap
            ctypes.CDLL(None).malloc_trim(0)

    while elapsed < args.seconds:
        batch = next(source)
        losses = gradients(weights, shape, batch, pieces, step)
        fraction = elapsed / args.seconds
        warm = min(1.0, (step + 1) / 100)
        # A single NaN in a gradient would spread to every weight.
        if not all(w.grad.isfinite().all() for w in weights.values() if w.grad is not None):
            say(f"{name} step {step}: a gradient is not finite, the batch is skipped")
            for weight in weights.values():
                weight.grad = None
            continue
        optimizer.step(warm * (0.02 + 0.98 * (1 + math.cos(math.pi * fraction)) / 2))
        step, tokens = step + 1, tokens + batch.ids.numel()
        elapsed = time.monotonic() - started
        sums.index_add_(0, batch.kinds, losses.detach())
        counts.index_add_(0, batch.kinds, torch.ones(len(losses)))
        if elapsed > next_log:
            mean = (sums / counts.clamp(min=1)).tolist()
            parts = ", ".join(f"{KINDS[i]} {mean[i]:.3f}" for i in range(1, len(KINDS)))
            speed = f"{tokens / 1e6:.2f}M tokens, {elapsed:.0f} s"
            say(f"{name} step {step}, {speed}: {parts}")
            sums, counts = torch.zeros_like(sums), torch.zeros_like(counts)
            next_log = elapsed + 30
        if elapsed > next_check:
            checkpoint()
            copies = {key: weight.detach().bfloat16() for key, weight in weights.items()}
            right = llm_eval.exact((copies, shape), encoder, factual("heldout")[:60])
            say(f"{name} step {step}: {right:.1%} of 60 held-out questions exact")
            next_check = elapsed + 240
    checkpoint()
    return {key: weight.detach() for key, weight in weights.items()}


def say(text: str) -> None:
    """Print one line of the log."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(prog="python -m models.train.llm", description=__doc__)
    parser.add_argument("stage", choices=("tokenizer", "target", "distill", "export", "evaluate"))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache/voiceloop/train")
    parser.add_argument("--starter", type=Path, default=Path(__file__).parents[1] / "starter",
                        help="where the models are exported to")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=3900.0, help="running time of the stage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="begin with the models of this folder")
    parser.add_argument("--rate", type=float, default=1.0, help="share of the usual learning rate")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    if args.stage == "tokenizer":
        if args.start:
            load_tokenizer(args.start / "llm-target").save_pretrained(args.work / "tokenizer")
        else:
            train_tokenizer(args.work / "tokenizer", args.seed)
        return
    tokenizer = load_tokenizer(args.work / "tokenizer")
    encoder = Encoder(tokenizer)
    target, draft = (replace(shape, vocab=len(tokenizer)) for shape in (TARGET, DRAFT))
    {"target": run_target, "distill": run_distill, "export": run_export, "evaluate": run_evaluate}[
        args.stage
    ](args, encoder, target, draft)


def run_target(args: argparse.Namespace, encoder: Encoder, target: Shape, _: Shape) -> None:
    """Train the target on dialogues of the domain."""
    # A resumed run goes on with data that it has not seen.
    path = args.work / "target.pt"
    begun = torch.load(path)["step"] if path.exists() else 0
    rng = random.Random(f"target {args.seed} {begun}")
    train(
        "target", target, batches(encoder, rng, TOKENS), encoder, args, rate=2e-3, pieces=compiled()
    )


def run_distill(args: argparse.Namespace, encoder: Encoder, target: Shape, draft: Shape) -> None:
    """Train the draft on replies of the target, which take 35 % of the time to generate."""
    path = args.work / "lessons.pt"
    if not path.exists():
        weights = torch.load(args.work / "target.pt")["weights"]
        half = {name: weight.bfloat16() for name, weight in weights.items()}
        made = llm_distill.lessons(
            half, target, encoder, 0.35 * args.seconds, TOKENS // 2, args.seed
        )
        say(f"{len(made)} batches of lessons")
        save(path, made)
    made = torch.load(path, weights_only=False)
    args.seconds *= 0.65
    source = llm_distill.course(made, encoder, TOKENS // 2, args.seed)
    train("draft", draft, source, encoder, args, rate=4e-3, pieces=PLAIN)


def run_export(args: argparse.Namespace, encoder: Encoder, target: Shape, draft: Shape) -> None:
    """Export the models that have been trained so far."""
    for name, shape in (("target", target), ("draft", draft)):
        path = args.work / f"{name}.pt"
        if path.exists():
            folder = args.starter / f"llm-{name}"
            weights = torch.load(path)["weights"]
            difference = llm_export.export(weights, shape, args.work / "tokenizer", folder)
            size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            say(f"{folder}: {size:.1f} MB; logits differ from transformers by {difference:.1e}")


def run_evaluate(args: argparse.Namespace, encoder: Encoder, *_: Shape) -> None:
    """Measure the exported models. Print the figures, save them, and put them into model cards."""
    draft = args.starter / "llm-draft"
    figures = llm_eval.evaluate(
        llm_export.read(args.starter / "llm-target"),
        llm_export.read(draft) if draft.exists() else None,
        encoder,
    )
    text = json.dumps(figures, indent=2)
    (args.work / "llm.json").write_text(text + "\n")
    print(text)
    for name, values in figures.items():
        llm_eval.fill(args.starter / name / "README.md", values)


if __name__ == "__main__":
    main()
