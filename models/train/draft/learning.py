"""Trains a draft: first the target replies, then a layer learns to predict the tokens of its
replies.

Requests, the noise of a batch and the order of batches follow from fixed seeds. So a training that
was stopped continues as if it had not been stopped.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import PreTrainedModel

from models.train.draft.layer import STEPS, Batch, FeatureLayer, acceptance, losses
from models.train.draft.replies import Generator, Replies, load_replies
from voiceloop.errors import ConfigError
from voiceloop.llm.draft.trained import DraftShape
from voiceloop.llm.gguf.file import GgufModel, StoredMatrix

BESIDE = 64
"""Number of dialogues in a batch of replies."""
ROWS = 2048
"""Approximate number of tokens in a training step."""
RATE = 1e-3
"""Initial learning rate. It falls along half a cosine."""
WARM_UP_S = 20.0
"""Seconds of training in which the learning rate rises."""
KEEP_S = 60.0
"""The layer is saved and its acceptance measured once in this number of seconds."""
GAIN = 0.7
"""16 bits are used if they take less than this share of the time of 32 bits."""
HELD_OUT_FILE = "held-out.safetensors"


@dataclass(slots=True)
class TrainingState:
    """The progress of a training."""

    target: str
    """The fingerprint of the target."""
    asks: str
    """A digest of the requests and of the settings with which the target replies."""
    generating_s: float = 0.0
    training_s: float = 0.0
    steps: int = 0
    curve: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """The learning curve: minutes of training, with the loss and the acceptance at that time."""


class TrainingStore:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        """Make `folder` if it does not exist. Raises ConfigError if it cannot be made."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be made: {error.strerror}", "name another folder with --out"
            ) from error
        for part in folder.glob("*.part"):
            part.unlink()

    def state(self, fresh: TrainingState) -> TrainingState:
        """Return the state in the folder, or `fresh` if the folder has none. Raises ConfigError if
        the state is damaged or belongs to another training."""
        path = self._folder / "state.json"
        if not path.exists():
            return fresh
        try:
            kept = TrainingState(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"{path} is damaged", "remove the folder to begin anew") from error
        if (kept.target, kept.asks) != (fresh.target, fresh.asks):
            raise ConfigError(
                f"{self._folder.parent} holds the training of another target, or of other prompts",
                "name another folder with --out, or remove that one",
            )
        return kept

    def keep(self, state: TrainingState) -> None:
        """Write the state."""
        self._write("state.json", json.dumps(asdict(state)).encode())

    def keep_learned(self, learned: dict[str, Any]) -> None:
        """Write `learned`, which comes from `Learner.learned`."""
        part = self._folder / "learned.part"
        torch.save(learned, part)
        os.replace(part, self._folder / "learned.pt")

    def learned(self) -> dict[str, Any] | None:
        """Return what `keep_learned` wrote; None if it has not written yet."""
        path = self._folder / "learned.pt"
        return torch.load(path, weights_only=True) if path.exists() else None

    def batches(self) -> Iterator[Replies]:
        """Yield the replies for the training, one batch after another. Damaged files are left
        out."""
        for path in sorted(self._folder.glob("replies-*.safetensors")):
            if found := load_replies(path):
                yield found

    def has(self, number: int) -> bool:
        """Return whether the file of batch `number` is there and complete."""
        try:
            with safe_open(self._batch(number), framework="pt"):
                return True
        except (OSError, SafetensorError):
            return False

    def damaged(self, number: int) -> bool:
        """Return whether the file of batch `number` is there but incomplete."""
        return self._batch(number).exists() and not self.has(number)

    def add(self, number: int, replies: Replies) -> None:
        """Write batch `number`."""
        replies.save(self._batch(number))

    def held_out(self) -> Replies | None:
        """Return the held-out replies, on which acceptance is measured; None if there are none."""
        return load_replies(self._folder / HELD_OUT_FILE)

    def hold_out(self, replies: Replies) -> None:
        """Write the held-out replies."""
        replies.save(self._folder / HELD_OUT_FILE)

    def _batch(self, number: int) -> Path:
        return self._folder / f"replies-{number:05}.safetensors"

    def _write(self, name: str, content: bytes) -> None:
        part = self._folder / f"{name}.part"
        part.write_bytes(content)
        os.replace(part, self._folder / name)


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """A report of the progress of a training."""

    doing: str
    done: float
    """Share of the current part that is done, from 0 to 1."""
    figures: str
    left_s: float


Tell = Callable[[TrainingProgress], None]


def generate(
    generator: Generator,
    hot: Generator,
    training: Sequence[Sequence[str]],
    held_out: Sequence[Sequence[str]],
    store: TrainingStore,
    state: TrainingState,
    seconds: float,
    tell: Tell,
) -> None:
    """Let the target reply. Stop when all runs together have taken `seconds`, or when the target
    has replied to every dialogue twice.

    Every second batch comes from `hot`, which also chooses less probable tokens; the others come
    from `generator`. In the second round over the dialogues, the two exchange their batches.
    """
    begun = time.perf_counter()
    if store.held_out() is None:
        store.hold_out(generator.replies(held_out, 0))
    once = math.ceil(len(training) / BESIDE)
    batches = 2 * once
    tokens, fresh, fresh_s = 0, 0, 0.0
    for number in range(batches):
        if store.has(number):
            continue
        if state.generating_s >= seconds and not store.damaged(number):
            return
        again, place = divmod(number, once)
        said = training[place * BESIDE : (place + 1) * BESIDE]
        replies = (hot if (place + again) % 2 else generator).replies(said, number + 1)
        store.add(number, replies)
        now = time.perf_counter()
        state.generating_s += now - begun
        fresh, fresh_s = fresh + 1, fresh_s + now - begun
        begun = now
        store.keep(state)
        tokens += int(replies.chosen.sum())
        done = max(state.generating_s / seconds, (number + 1) / batches)
        left = min(seconds - state.generating_s, (batches - number - 1) * fresh_s / fresh)
        rate = f"{tokens / fresh_s:.0f} tokens/s, {number + 1} of {batches} batches"
        tell(TrainingProgress("replies", min(1.0, done), rate, max(0.0, left)))


def common_tokens(batches: Iterator[Replies], count: int, vocab: int) -> Tensor:
    """Return the ids of the `count` most frequent tokens in replies, ascending, int64. Of equally
    frequent tokens the lower ids come first, because tokenizers give them to more common tokens."""
    counts = torch.zeros(vocab, dtype=torch.float64)
    for replies in batches:
        chosen = replies.ids[replies.chosen]
        counts += torch.bincount(chosen, minlength=vocab)[:vocab]
    counts -= torch.arange(vocab, dtype=torch.float64) / vocab / 2
    return counts.topk(min(count, vocab)).indices.sort().values


@dataclass(frozen=True, slots=True)
class Matrices:
    """The matrices of the target that the layer takes over. Their rows are taken by indexing."""

    embedding: Tensor | StoredMatrix
    """The plain weights: some models scale their embeddings."""
    head: Tensor | StoredMatrix
    device: torch.device


def matrices_of(model: PreTrainedModel | GgufModel) -> Matrices:
    """Return the matrices of `model`."""
    if isinstance(model, GgufModel):
        return Matrices(model.embedding, model.head, torch.device("cpu"))
    parts: Any = model
    embedding: Tensor = parts.get_input_embeddings().weight.detach()
    return Matrices(embedding, parts.get_output_embeddings().weight.detach(), model.device)


@cache
def halves(device: torch.device) -> bool:
    """Return whether bfloat16 is much faster than float32 on `device`. On a CPU this is measured,
    because some processors emulate products of bfloat16; on other devices it is assumed."""
    if device.type != "cpu":
        return True
    return _attends() and _took(torch.bfloat16) < GAIN * _took(torch.float32)


def _attends() -> bool:
    """Return whether torch can compute attention in bfloat16 on this CPU. Torch 2.13 fails if
    ATEN_CPU_CAPABILITY names an older instruction set than the processor's."""
    rows = torch.ones(1, 1, 128, 64, dtype=torch.bfloat16)
    try:
        F.scaled_dot_product_attention(rows, rows, rows, is_causal=True)
    except RuntimeError:
        return False
    return True


def _took(dtype: torch.dtype) -> float:
    """Time a matrix product of a layer's size 20 times. Return the shortest time, in seconds."""
    x, weights = torch.ones(128, 768, dtype=dtype), torch.ones(768, 768, dtype=dtype)
    return min(timeit.repeat(lambda: x @ weights, number=1, repeat=20))


class Learner:
    """Trains a layer with replies of the target."""

    def __init__(
        self,
        matrices: Matrices,
        shape: DraftShape,
        tokens: Tensor,
        held_out: Replies,
        penalty: float = 1.0,
    ) -> None:
        """`matrices` are the target's. `tokens` are the ids that the layer chooses among, int64
        [tokens]. `penalty` is the penalty for repetition in the `held_out` replies."""
        device, embedding = matrices.device, matrices.embedding
        self._embedding = embedding
        self._head = matrices.head[tokens.to(device)].float()
        self.tokens = tokens
        self._places = torch.full((len(embedding),), -1, device=device)
        self._places[tokens.to(device)] = torch.arange(len(tokens), device=device)
        self._device = device
        self._quick = torch.autocast(device.type, torch.bfloat16, enabled=halves(device))
        self._held_out, self._penalty = held_out, penalty
        seen = held_out.features.float()
        size = float(embedding[held_out.ids.to(device)].float().square().mean().sqrt())
        torch.manual_seed(0)
        self.layer = FeatureLayer(shape, size, seen.square().mean(0).sqrt().cpu()).to(device)
        self._optimizer = torch.optim.AdamW(
            self.layer.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01
        )

    def learned(self) -> dict[str, Any]:
        """Return the state from which the training can continue."""
        return {
            "layer": self.layer.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "tokens": self.tokens,
        }

    def go_on(self, learned: dict[str, Any]) -> None:
        """Continue from the state `learned`, which `Learner.learned` returned."""
        self.layer.load_state_dict(learned["layer"])
        self._optimizer.load_state_dict(learned["optimizer"])

    def step(self, batch: Batch, done: float, seconds: float) -> float:
        """Learn from a batch, and return the loss.

        `done` is the finished share of the training, from 0 to 1; `seconds` is its duration so far.
        At first only the step on the target's own features is trained. The later steps are added
        one by one. Each of them costs as much as the first, and builds on the step before it.
        """
        chained = min(STEPS, 1 + int(done * STEPS))
        rate = RATE * min(1.0, seconds / WARM_UP_S + 0.01) * (0.5 + 0.5 * math.cos(math.pi * done))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        with self._quick:
            loss = losses(batch, self.layer(batch, chained), self._head)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.layer.parameters(), 1.0)
        self._optimizer.step()
        return float(loss.detach())

    @torch.no_grad()
    def acceptance(self) -> list[float]:
        """Return the acceptance on the held-out replies. The first number is the share of first
        draft tokens that are right. Each further number is the share of right draft tokens at the
        next place, given that all before are right."""
        total = torch.zeros(1 + STEPS, dtype=torch.float64)
        for batch in self._gone_through([self._held_out], shuffled=None):
            with self._quick:
                found = self.layer(batch)
            total += acceptance(batch, found, self._head, self._penalty)
        return [float(a / b) if b else 0.0 for a, b in zip(total[1:], total[:-1], strict=True)]

    def batches(self, replies: Sequence[Replies], seed: int) -> Iterator[Batch]:
        """Yield all replies once, in batches and in an order that `seed` determines."""
        yield from self._gone_through(replies, shuffled=random.Random(seed))

    def _gone_through(
        self, replies: Sequence[Replies], shuffled: random.Random | None
    ) -> Iterator[Batch]:
        whole = [
            piece
            for some in replies
            for piece in zip(
                some.ids.split(some.lengths.tolist()),
                some.features.split(some.lengths.tolist()),
                some.chosen.split(some.lengths.tolist()),
                strict=True,
            )
        ]
        whole.sort(key=lambda piece: len(piece[0]))
        beside, groups = list[tuple[Tensor, Tensor, Tensor]](), list[Any]()
        for piece in whole:  # similar lengths go together, so there is little padding
            if beside and (len(beside) + 1) * len(piece[0]) > ROWS:
                groups.append(beside)
                beside = []
            beside = [*beside, piece]
        groups.append(beside)
        if shuffled is not None:
            shuffled.shuffle(groups)
        for group in groups:
            yield self._batch(group)

    def _batch(self, group: list[tuple[Tensor, Tensor, Tensor]]) -> Batch:
        def filled(parts: list[Tensor]) -> Tensor:
            return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).to(self._device)

        ids = filled([piece[0] for piece in group])
        counts = F.pad(filled([piece[2] for piece in group]), (0, 1))[:, 1:]
        features = filled([piece[1] for piece in group]).float()
        embedded = self._embedding[ids].float()
        return Batch(embedded, features, counts, self._places[ids])


def train(
    learner: Learner, store: TrainingStore, state: TrainingState, seconds: float, tell: Tell
) -> None:
    """Train the layer until all runs together have taken `seconds`, but on at least one batch."""
    replies = list(store.batches())
    begun = reported = time.perf_counter()
    while True:
        for batch in learner.batches(replies, state.steps):
            done = min(1.0, state.training_s / seconds) if seconds > 0 else 1.0
            loss = learner.step(batch, done, state.training_s)
            state.steps += 1
            now = time.perf_counter()
            state.training_s += now - begun
            begun = now
            if now - reported >= KEEP_S or state.training_s >= seconds:
                found = learner.acceptance()
                minutes = (state.generating_s + state.training_s) / 60
                named = {f"accepted_{at + 1}": round(a, 4) for at, a in enumerate(found)}
                state.curve.append({"minutes": round(minutes, 2), "loss": round(loss, 4), **named})
                store.keep_learned(learner.learned())
                store.keep(state)
                rates = " ".join(f"{a:.2f}" for a in found)
                reported = time.perf_counter()
                figures = f"step {state.steps}, accepted {rates}"
                left = max(0.0, seconds - state.training_s)
                tell(TrainingProgress("learning", done, figures, left))
            if state.training_s >= seconds:
                return
