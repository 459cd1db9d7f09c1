"""The command `voiceloop train-draft`: its arguments, and the checks before the training begins.

Heavy modules are imported only when the command runs.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, structs

from voiceloop.errors import ConfigError
from voiceloop.flags import Command, written
from voiceloop.terminal import tell
from voiceloop.threads import available_cores

if TYPE_CHECKING:
    from voiceloop.drafting.train import TrainingProgress


class TrainDraft(Command, frozen=True, kw_only=True):
    """Train a draft, which makes a model's replies come faster.

    The draft changes none of the replies. First the model replies to requests, then a small layer
    learns to predict its tokens. If the training was stopped, the same command continues it.
    Afterwards, set `llm.draft` to the folder.
    """

    uses = ("llm",)
    examples = (
        "voiceloop train-draft --target smollm2-135m-instruct --out mine",
        "voiceloop talk --preset cpu --llm.draft mine",
    )
    docs = "docs/engines.md"

    target: Annotated[str | None, written("MODEL")] = None
    """Name of the model to draft for; none: `llm.target`."""
    out: Annotated[Path, written("FOLDER")]
    """Folder for the draft. Its subfolder `training` keeps the files to continue a stopped
    training."""
    prompts: Annotated[Path | None, written("FILE")] = None
    """Requests to reply to, one on each line; none: some thousands that are bundled."""
    minutes: Annotated[float, Meta(ge=0.1, le=100_000)] = 120.0
    """Minutes that the training takes in total, including earlier runs."""
    tokens: Annotated[int, Meta(ge=16, le=262_144), written("N")] = 6144
    """Number of tokens that the draft chooses among: the most frequent ones in replies."""


def train_draft(command: TrainDraft) -> int:
    """Run `voiceloop train-draft`."""
    from voiceloop.catalog.names import find
    from voiceloop.drafting.requests import dialogues
    from voiceloop.drafting.store import TrainingState, TrainingStore
    from voiceloop.llm.engine import placement
    from voiceloop.llm.gguf.file import gguf_in
    from voiceloop.llm.model.loading import load_model
    from voiceloop.status import loading

    config = command.settings.llm
    if command.target is not None:
        config = structs.replace(config, target=command.target)
    if config.target == "starter":
        raise ConfigError("the starter has a draft of its own", "name another model with --target")
    if command.out.is_file():
        raise ConfigError(f"{command.out} is a file", "name a folder with --out")
    requests = dialogues(command.prompts)
    store = TrainingStore(command.out / "training")
    with loading(config.target, sys.stderr):
        import torch

        from voiceloop.drafting.run import Training

        # No conversation runs meanwhile, so the default is all cores.
        torch.set_num_threads(command.settings.threads or available_cores())
        whole = gguf_in(find(config.target, "llm")) is None
        target = load_model(config.target, *placement(config), whole=whole)
        training = Training(target, config)
    words = repr((requests, training.system, config.temperature, config.repetition_penalty))
    digest = hashlib.sha256(words.encode()).hexdigest()[:32]
    state = store.state(TrainingState(training.fingerprint, digest))
    card = training.run(
        requests, store, state, command.minutes * 60, command.tokens, command.out, _tell
    )
    rates = ", ".join(f"{rate:.0%}" for rate in card.accepted)
    tell(f"{command.out}: of its guesses are right, first to last, {rates}")
    tell(f"use it with --llm.target {config.target} --llm.draft {command.out}")
    return 0


def _tell(progress: TrainingProgress) -> None:
    left = (
        f"{progress.left_s / 60:.0f} min" if progress.left_s >= 60 else f"{progress.left_s:.0f} s"
    )
    line = f"voiceloop: {progress.doing}: {progress.done:4.0%}, {progress.figures}; {left} left"
    print(line, file=sys.stderr, flush=True)
