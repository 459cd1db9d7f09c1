"""Trains a draft for a target: `python -m models.train.draft --target MODEL --out FOLDER`.

First the target replies to requests, then a layer learns to predict the tokens of its replies.
`--help` lists what it takes; the settings are those of `voiceloop`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import torch
from msgspec import Meta, structs
from safetensors.torch import save_file

from models.train.draft.layer import rounded
from models.train.draft.learning import (
    Learner,
    TrainingProgress,
    TrainingState,
    TrainingStore,
    common_tokens,
    generate,
    halves,
    matrices_of,
    train,
)
from models.train.draft.replies import BlockGenerator, Generator, GgufGenerator, ReplySettings
from models.train.draft.requests import Dialogues, dialogues
from voiceloop import process
from voiceloop.catalog.names import find
from voiceloop.cli.main import failed
from voiceloop.cli.manual import help_text
from voiceloop.errors import ConfigError, EngineError
from voiceloop.llm.draft.trained import CARD, TOKENS, WEIGHTS, DraftCard, DraftShape
from voiceloop.llm.engine import system_prompt
from voiceloop.llm.gguf.file import GgufModel, gguf_in
from voiceloop.llm.model.checkpoint import Checkpoint
from voiceloop.llm.model.loading import LoadedModel, family, fingerprint, load_model
from voiceloop.llm.pair import placement, vocabulary
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.process import available_cores
from voiceloop.settings.config import LlmConfig
from voiceloop.settings.flags import PROGRAM, Command, Help, parse, written
from voiceloop.status import loading
from voiceloop.terminal import tell

NAME = "train-draft"
"""The name of the recipe in messages about its arguments."""
WARM = 0.8
"""Minimum temperature of every second batch of replies."""
GENERATING = 0.4
"""Share of the training time that is spent on generating replies."""


class TrainDraft(Command, frozen=True, kw_only=True):
    """Train a draft, which makes a model's replies come faster.

    The draft changes none of the replies. First the model replies to requests, then a small layer
    learns to predict its tokens. If the training was stopped, the same command continues it.
    Afterwards, set `llm.draft` to the folder.
    """

    uses = ("llm",)
    examples = (
        "python -m models.train.draft --target smollm2-135m-instruct --out mine",
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


def main(argv: Sequence[str]) -> int:
    """Train a draft as the arguments `argv` say, and return the exit status."""
    try:
        command = _command(argv)
        if isinstance(command, Help):
            print(_called(help_text(command, {NAME: TrainDraft}, {}, "", 100)))
            return 0
        return train_draft(command)
    except Exception as raised:
        return failed(raised)


def _command(argv: Sequence[str]) -> TrainDraft | Help:
    try:
        return parse({NAME: TrainDraft}, [NAME, *argv])
    except ConfigError as error:
        raise ConfigError(error.message, _called(error.hint)) from error


def _called(text: str) -> str:
    """Return `text` about a command of voiceloop with the command line of this recipe."""
    return text.replace(f"{PROGRAM} {NAME}", "python -m models.train.draft")


def train_draft(command: TrainDraft) -> int:
    """Check the arguments, train the draft, and return the exit status."""
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
        # No conversation runs meanwhile, so the default is all cores.
        torch.set_num_threads(command.settings.threads or available_cores())
        whole = gguf_in(find(config.target, "llm")) is None
        target = load_model(config.target, *placement(config), whole=whole)
        training = Training(target, config)
    words = repr((requests, training.system, config.temperature, config.repetition_penalty))
    digest = hashlib.sha256(words.encode()).hexdigest()[:32]
    state = store.state(TrainingState(training.fingerprint, digest))
    card = training.run(requests, store, state, command.minutes * 60, command.tokens, command.out)
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


class Training:
    """Trains a draft for one target."""

    def __init__(self, target: LoadedModel, config: LlmConfig) -> None:
        """Prepare the training. Raises EngineError if no draft can be trained for the target."""
        model = target.model
        assert not isinstance(model, Checkpoint), "it was asked for whole"
        self._model, self._target = model, target
        template = ChatTemplate(target.tokenizer, target.name)
        self.fingerprint = fingerprint(target.model, template)
        self.system = system_prompt(config, template)
        sampling = Sampling(
            temperature=config.temperature,
            top_k=config.top_k,
            top_p=config.top_p,
            min_p=config.min_p,
            repetition_penalty=config.repetition_penalty,
        )
        ends = target.eos | template.closing
        self._settings = ReplySettings(template, ends, self.system, sampling, vocabulary(target))
        if isinstance(model, GgufModel):
            return
        if getattr(model, "hf_quantizer", None) is not None:
            raise EngineError(
                f"the weights of '{target.name}' are quantised; a draft is trained for plain ones",
                "name the model that they were made from, or a GGUF file of it",
            )
        if model.dtype == torch.float32 and halves(model.device):
            cast(Any, model).to(torch.bfloat16)

    def run(
        self,
        dialogues: Dialogues,
        store: TrainingStore,
        state: TrainingState,
        seconds: float,
        tokens: int,
        folder: Path,
    ) -> DraftCard:
        """Train until all runs together have taken `seconds`. Write the draft into `folder`, and
        return its card. The draft chooses among `tokens` tokens."""
        sampling = self._settings.sampling
        generate(
            self._generator(sampling),
            self._generator(replace(sampling, temperature=max(WARM, sampling.temperature))),
            dialogues.training,
            dialogues.held_out,
            store,
            state,
            seconds * GENERATING,
            _tell,
        )
        held_out, learned = store.held_out(), store.learned()
        assert held_out is not None, "it was generated first"
        if learned is not None:
            kept = learned["tokens"]
        else:
            kept = common_tokens(store.batches(), tokens, self._settings.vocab)
        shape = self._shape()
        penalty = sampling.repetition_penalty
        learner = Learner(matrices_of(self._model), shape, kept, held_out, penalty)
        if learned is not None:
            learner.go_on(learned)
        train(learner, store, state, seconds - state.generating_s, _tell)
        return self._write(learner, shape, state, folder)

    def _generator(self, sampling: Sampling) -> Generator:
        settings = replace(self._settings, sampling=sampling)
        if isinstance(self._model, GgufModel):
            return GgufGenerator(self._model, settings)
        return BlockGenerator(self._model, settings)

    def _shape(self) -> DraftShape:
        """Return the shape of the draft's layer: like the target's layers, but with an MLP of twice
        the hidden size."""
        if isinstance(model := self._model, GgufModel):
            hidden, dim = model.width, model.number("attention.key_length")
            heads = model.number("attention.head_count") or 1
            groups = model.number("attention.head_count_kv")
        else:
            config: Any = cast(Any, model.config).get_text_config()
            hidden, heads = config.hidden_size, config.num_attention_heads
            groups = getattr(config, "num_key_value_heads", None)
            dim = getattr(config, "head_dim", None)
        return DraftShape(hidden, heads, groups or heads, dim or hidden // heads, 2 * hidden)

    def _write(
        self, learner: Learner, shape: DraftShape, state: TrainingState, folder: Path
    ) -> DraftCard:
        last = state.curve[-1] if state.curve else {}
        accepted = tuple(rate for name, rate in last.items() if name.startswith("accepted"))
        card = DraftCard(
            target=self._target.name,
            family=family(self._target),
            shape=shape,
            minutes=round((state.generating_s + state.training_s) / 60, 1),
            accepted=accepted,
        )
        weights = rounded(
            {name: weight.detach().cpu() for name, weight in learner.layer.weights().items()}
        )
        part = folder / f"{WEIGHTS}.part"
        save_file(weights | {TOKENS: learner.tokens.int()}, part)
        os.replace(part, folder / WEIGHTS)
        part = folder / f"{CARD}.part"
        part.write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
        os.replace(part, folder / CARD)
        return card


if __name__ == "__main__":
    with process.all_like_ctrl_c():
        try:
            status = main(sys.argv[1:])
        except KeyboardInterrupt:
            process.leave()
    sys.exit(status)
