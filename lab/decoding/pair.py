"""The models that are measured: our engine with access to its decoders, and transformers' copies.

This module measures nothing.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from msgspec.structs import replace
from torch import Tensor
from transformers import PreTrainedModel

from lab.decoding.captures import Captures
from lab.decoding.synthetic import synthetic_pair
from voiceloop.bench.modes import another, prompt_of, without_draft
from voiceloop.errors import ConfigError, OutOfMemory
from voiceloop.llm.decode.captured import Capture, Captured, CudaGraphs
from voiceloop.llm.draft.drafts import ModelDrafter
from voiceloop.llm.draft.featuredraft import FeatureModel, LayerDrafter
from voiceloop.llm.draft.trained import LoadedHead
from voiceloop.llm.draft.translated import TranslatedDrafter
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CausalModel, Decoder, chunk
from voiceloop.llm.model.loading import LoadedModel
from voiceloop.llm.pair import draft_of, load_pair, placement
from voiceloop.settings.config import LlmConfig


class NoDraft(ConfigError):
    """The error that there is no draft model for the target."""


class Pair(SpeculativeLlm):
    """An engine over a target and a draft, with access to each of them alone."""

    def __init__(
        self,
        target: LoadedModel,
        draft: LoadedModel | LoadedHead,
        config: LlmConfig,
        capture: Capture | None = None,
    ) -> None:
        """Take over the weights of `target` and `draft`. Raises what `SpeculativeLlm` raises."""
        on_gpu = cast(PreTrainedModel, target.model).device.type == "cuda"
        same = isinstance(draft, LoadedModel) and _vocabulary(target) == _vocabulary(draft)
        if capture is None and on_gpu and same:
            capture = CudaGraphs()
        self.captures = capture and Captures(capture)
        """Counts of captured graphs; None if rounds are not captured."""
        # The predicted speed-up and transformers' modes assume that draft tokens form a chain.
        super().__init__(target, draft, replace(config, draft_tree="off"), self.captures)
        self.eos = self._eos
        match self._drafter:
            case ModelDrafter(model=model):
                drafts: CausalModel = model
            case TranslatedDrafter(model=model):
                drafts = Foreign(model, self._target.vocab)
            case LayerDrafter(model=FeatureModel() as layer):
                drafts = Alone(layer)
            case _:
                raise AssertionError("a model drafts")
        self.decoders: tuple[Decoder, CausalModel] = self._target, drafts

    def plain(self) -> SpeculativeLlm:
        """Return an engine over the same target without a draft."""
        return without_draft(self)

    @property
    def translates(self) -> bool:
        """True if the draft has another vocabulary than the target."""
        return isinstance(self._drafter, TranslatedDrafter)

    @property
    def captured(self) -> Captured | None:
        """The captured rounds, which have fixed shapes; None if rounds are not captured."""
        return self._captured

    def prompt(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a conversation up to where the reply to `text` begins."""
        return prompt_of(self, text)


class Foreign:
    """A draft with another vocabulary, made to accept the target's ids. It is only for timing."""

    def __init__(self, draft: CausalModel, vocab: int) -> None:
        """Wrap `draft`; `vocab` is the vocabulary size of the target."""
        self.vocab, self.parameters, self.pass_bytes = vocab, draft.parameters, draft.pass_bytes
        self.device, self.dtype, self.chunk = draft.device, draft.dtype, draft.chunk
        self._draft = draft

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Run the draft on `ids` modulo its vocabulary size. Return logits as `Decoder.forward`
        does."""
        return self._draft.forward(ids % self._draft.vocab, cache, keep)[:, : self.vocab]


class Alone:
    """A trained draft layer as a decoder that gets zeros in place of the target's features. Its
    times are right, but its tokens are useless."""

    def __init__(self, layer: FeatureModel) -> None:
        self.vocab, self.parameters, self.pass_bytes = (
            layer.vocab,
            layer.parameters,
            layer.pass_bytes,
        )
        self.device, self.dtype, self.chunk = layer.device, layer.dtype, chunk(layer.device)
        self._layer = layer

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Run the layer on `ids`. Return logits as `Decoder.forward` does; `keep` must be 1."""
        features = torch.zeros(len(ids), self._layer.hidden, dtype=self.dtype, device=self.device)
        return self._layer.forward(ids, features, cache)[0]


def without_graphs(pair: Pair) -> Pair:
    """Return an engine over the same models whose rounds are not captured."""
    plainly = another(pair)
    plainly._captured = None
    return plainly


@dataclass(frozen=True, slots=True)
class Subjects:
    """The same weights twice: in our engine and in transformers."""

    pair: Pair
    target: PreTrainedModel
    """The target in transformers."""
    draft: PreTrainedModel | None
    """The draft in transformers; None if transformers has no such draft."""
    draft_parameters: int
    tokenizers: tuple[Any, Any] | None
    """The tokenizers of target and draft, if their vocabularies differ; otherwise None."""
    names: tuple[str, str]
    """The names of target and draft."""


def load_subjects(config: LlmConfig, synthetic: str | None, acceptance: float) -> Subjects:
    """Load or build target and draft, and a second copy of both for transformers.

    Raises what `load_models` raises, and OutOfMemory if the two copies do not fit into memory.
    """
    return subjects(*load_models(config, synthetic, acceptance), config)


def load_models(
    config: LlmConfig, synthetic: str | None, acceptance: float
) -> tuple[LoadedModel, LoadedModel | LoadedHead]:
    """Load target and draft, or build those of a `synthetic` pair.

    Raises what loading raises, ConfigError if the settings allow no draft tokens, and NoDraft.
    """
    if config.num_speculative_tokens == 0:
        raise ConfigError(
            "llm.num_speculative_tokens is 0, so there is nothing to compare",
            "leave it at auto, or set it to a number above 0",
        )
    if synthetic is not None:
        device, dtype = placement(config)
        return synthetic_pair(synthetic, acceptance, device, dtype or torch.bfloat16)
    nothing = NoDraft(
        f"no model is named that drafts for '{config.target}'",
        "name one with --draft: a small model of the same family",
    )
    if draft_of(config) in ("ngram", "none"):
        raise nothing
    target, draft = load_pair(config, whole=True)
    if draft is None:  # no draft ships for the target
        raise nothing
    return target, draft


def subjects(target: LoadedModel, draft: LoadedModel | LoadedHead, config: LlmConfig) -> Subjects:
    """Make our engine from a loaded pair, and copies for transformers. The engine takes over the
    weights, so `target` and `draft` must not be used afterwards."""
    try:
        copies = _copy(target), _copy(draft) if isinstance(draft, LoadedModel) else None
        pair = Pair(target, draft, config)
    except (torch.OutOfMemoryError, OutOfMemory) as error:
        raise OutOfMemory(
            f"'{target.name}' and '{draft.name}' do not fit into memory twice",
            "choose smaller models: transformers' modes need a copy of their own",
        ) from error
    tokenizers: tuple[Any, Any] | None = None
    if isinstance(draft, LoadedModel) and pair.translates:
        tokenizers = target.tokenizer, draft.tokenizer
    names = target.name, draft.name
    return Subjects(pair, *copies, pair.decoders[1].parameters, tokenizers, names)


def _vocabulary(loaded: LoadedModel) -> dict[str, int]:
    return loaded.tokenizer.get_vocab()


def _copy(loaded: LoadedModel) -> PreTrainedModel:
    assert isinstance(loaded.model, PreTrainedModel)
    return copy.deepcopy(loaded.model)
