"""The command `voiceloop train-draft`: what it takes, and what is wrong with that, before it runs.

Nothing heavy is imported before it runs.
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
    """Train a draft, which makes a language model's replies come faster.

    It changes none of them. At first the model replies to requests, then a small layer learns to
    guess what it says. Stopped in between, the same command goes on. `llm.draft` names the folder
    afterwards.
    """

    uses = ("llm",)
    examples = (
        "voiceloop train-draft --target smollm2-135m-instruct --out mine",
        "voiceloop talk --preset cpu --llm.draft mine",
    )
    docs = "docs/engines.md"

    target: Annotated[str | None, written("MODEL")] = None
    """The model to draft for; none: `llm.target`."""
    out: Annotated[Path, written("FOLDER")]
    """Where the draft goes; what is kept to go on from lies there in `training`."""
    prompts: Annotated[Path | None, written("FILE")] = None
    """Requests to reply to, one on each line; none: some thousands that are bundled."""
    minutes: Annotated[float, Meta(ge=0.1, le=100_000)] = 120.0
    """How long it takes in all, with what was done before."""
    tokens: Annotated[int, Meta(ge=16, le=262_144), written("N")] = 6144
    """Tokens that the draft chooses among, those that replies are made of most often."""


def train_draft(command: TrainDraft) -> int:
    """`voiceloop train-draft`."""
    from voiceloop.drafting.requests import dialogues
    from voiceloop.drafting.store import TrainingState, TrainingStore
    from voiceloop.llm.engine import placement
    from voiceloop.llm.model.loading import load_model
    from voiceloop.status import loading

    config = command.settings.llm
    if command.target is not None:
        config = structs.replace(config, target=command.target)
    if config.target == "starter":
        raise ConfigError("the starter has a draft of its own", "name another model with --target")
    if config.quantize != "none":
        raise ConfigError(
            "a draft is trained for a model as it is, not for a rounded one",
            "leave llm.quantize at none",
        )
    if command.out.is_file():
        raise ConfigError(f"{command.out} is a file", "name a folder with --out")
    asked = dialogues(command.prompts)
    store = TrainingStore(command.out / "training")
    with loading(config.target, sys.stderr):
        import torch

        from voiceloop.drafting.run import Training

        # Nobody converses meanwhile: all cores, where nothing else is said.
        torch.set_num_threads(command.settings.threads or available_cores())
        target = load_model(config.target, *placement(config), whole=True)
        training = Training(target, config)
    words = repr((asked, training.system, config.temperature, config.repetition_penalty))
    digest = hashlib.sha256(words.encode()).hexdigest()[:32]
    state = store.state(TrainingState(training.fingerprint, digest))
    card = training.run(
        asked, store, state, command.minutes * 60, command.tokens, command.out, _tell
    )
    rates = ", ".join(f"{rate:.0%}" for rate in card.accepted)
    tell(f"{command.out}: of its guesses are right, first to last, {rates}")
    tell(f"use it with --llm.target {config.target} --llm.draft {command.out}")
    return 0


def _tell(told: TrainingProgress) -> None:
    left = f"{told.left_s / 60:.0f} min" if told.left_s >= 60 else f"{told.left_s:.0f} s"
    line = f"voiceloop: {told.doing}: {told.done:4.0%}, {told.figures}; {left} left"
    print(line, file=sys.stderr, flush=True)
