"""Runs one training: takes a target, and writes the folder of its draft."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from safetensors.torch import save_file

from voiceloop.config import LlmConfig
from voiceloop.drafting.ggufreplies import GgufGenerator
from voiceloop.drafting.precision import halves
from voiceloop.drafting.replies import BlockGenerator, Generator
from voiceloop.drafting.requests import Dialogues
from voiceloop.drafting.store import TrainingState, TrainingStore
from voiceloop.drafting.train import Learner, Tell, common_tokens, generate, matrices_of, train
from voiceloop.errors import EngineError
from voiceloop.llm.draft.featuredraft import (
    CARD,
    TOKENS,
    WEIGHTS,
    DraftCard,
    DraftShape,
    rounded,
)
from voiceloop.llm.engine import system_prompt, vocabulary
from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.model.checkpoint import Checkpoint
from voiceloop.llm.model.fingerprint import family, fingerprint
from voiceloop.llm.model.loading import LoadedModel
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.template import ChatTemplate

WARM = 0.8
"""Minimum temperature of every second batch of replies."""
GENERATING = 0.4
"""Share of the training time that is spent on generating replies."""


class Training:
    """Trains a draft for one target."""

    def __init__(self, target: LoadedModel, config: LlmConfig) -> None:
        """Prepare the training. Raises EngineError if no draft can be trained for the target."""
        model = target.model
        assert not isinstance(model, Checkpoint), "it was asked for whole"
        self._model, self._target = model, target
        self._template = ChatTemplate(target.tokenizer, target.name)
        self._vocab = vocabulary(target)
        self.system = system_prompt(config, self._template)
        self.fingerprint = fingerprint(target.model, self._template)
        self._sampling = Sampling(
            temperature=config.temperature,
            top_k=config.top_k,
            top_p=config.top_p,
            min_p=config.min_p,
            repetition_penalty=config.repetition_penalty,
        )
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
        tell: Tell,
    ) -> DraftCard:
        """Train until all runs together have taken `seconds`. Write the draft into `folder`, and
        return its card. The draft chooses among `tokens` tokens."""
        generate(
            self._generator(self._sampling),
            self._generator(
                replace(self._sampling, temperature=max(WARM, self._sampling.temperature))
            ),
            dialogues.training,
            dialogues.held_out,
            store,
            state,
            seconds * GENERATING,
            tell,
        )
        held_out, learned = store.held_out(), store.learned()
        assert held_out is not None, "it was generated first"
        if learned is not None:
            kept = learned["tokens"]
        else:
            kept = common_tokens(store.batches(), tokens, self._vocab)
        shape = self._shape()
        penalty = self._sampling.repetition_penalty
        learner = Learner(matrices_of(self._model), shape, kept, held_out, penalty)
        if learned is not None:
            learner.go_on(learned)
        train(learner, store, state, seconds - state.generating_s, tell)
        return self._write(learner, shape, state, folder)

    def _generator(self, sampling: Sampling) -> Generator:
        ends = self._target.eos | self._template.closing
        others = self._template, ends, self.system, sampling, self._vocab
        if isinstance(self._model, GgufModel):
            return GgufGenerator(self._model, *others)
        return BlockGenerator(self._model, *others)

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
