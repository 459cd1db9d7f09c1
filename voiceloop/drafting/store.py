"""The files of a training: the replies, and the state from which a stopped training continues.

Each file is written completely or not at all, so a power failure leaves no incomplete file.
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
        return load_replies(self._folder / HELD_OUT)

    def hold_out(self, replies: Replies) -> None:
        """Write the held-out replies."""
        replies.save(self._folder / HELD_OUT)

    def _batch(self, number: int) -> Path:
        return self._folder / f"replies-{number:05}.safetensors"

    def _write(self, name: str, content: bytes) -> None:
        part = self._folder / f"{name}.part"
        part.write_bytes(content)
        os.replace(part, self._folder / name)
