"""What a training keeps in its folder, so that it goes on where it was stopped: replies and states.

Everything is written whole or not at all; what was being written when the power went is not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from voiceloop.drafting.replies import Replies, load_replies
from voiceloop.errors import ConfigError

HELD_OUT = "held-out.safetensors"


@dataclass(slots=True)
class TrainingState:
    """How far a training is."""

    target: str
    """The fingerprint of the model that is drafted for."""
    asks: str
    """What it was asked, and how it was to reply."""
    generating_s: float = 0.0
    training_s: float = 0.0
    steps: int = 0
    curve: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """Minutes of training, and acceptance by then."""


class TrainingStore:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError where no folder can be made."""
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
        """The state that is kept, or `fresh`. Raises ConfigError where another training is."""
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
        """Write what has been learned."""
        part = self._folder / "learned.part"
        torch.save(learned, part)
        os.replace(part, self._folder / "learned.pt")

    def learned(self) -> dict[str, Any] | None:
        """What `keep_learned` wrote, if anything."""
        path = self._folder / "learned.pt"
        return torch.load(path, weights_only=True) if path.exists() else None

    def batches(self) -> Iterator[Replies]:
        """The replies to train on, batch by batch."""
        for path in sorted(self._folder.glob("replies-*.safetensors")):
            if found := load_replies(path):
                yield found

    def has(self, number: int) -> bool:
        """Whether batch `number` is there, and whole."""
        try:
            with safe_open(self._batch(number), framework="pt"):
                return True
        except (OSError, SafetensorError):
            return False

    def damaged(self, number: int) -> bool:
        """Whether batch `number` is there, and not whole."""
        return self._batch(number).exists() and not self.has(number)

    def add(self, number: int, replies: Replies) -> None:
        """Write a batch."""
        replies.save(self._batch(number))

    def held_out(self) -> Replies | None:
        """The replies to measure by."""
        return load_replies(self._folder / HELD_OUT)

    def hold_out(self, replies: Replies) -> None:
        """Write them."""
        replies.save(self._folder / HELD_OUT)

    def _batch(self, number: int) -> Path:
        return self._folder / f"replies-{number:05}.safetensors"

    def _write(self, name: str, content: bytes) -> None:
        part = self._folder / f"{name}.part"
        part.write_bytes(content)
        os.replace(part, self._folder / name)
