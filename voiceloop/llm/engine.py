"""The built-in language model engine: a target, a draft, and the conversations that use both.

It loads the two models, checks that they suit each other, and sets up conversations. The module
`speculate` decides tokens, and the module `conversation` keeps the dialogue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from random import SystemRandom

import torch
from torch import Tensor

from voiceloop.bundled import bundled
from voiceloop.calibration.idle import cache_folder, of_family, recall
from voiceloop.catalog.names import find
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.decode.captured import (
    LENGTHS,
    Capture,
    Captured,
    CudaGraphs,
    FixedRound,
    PlacedModel,
)
from voiceloop.llm.decode.hook import find_hook
from voiceloop.llm.decode.speculate import Speculator
from voiceloop.llm.draft.drafts import Drafter, ModelDrafter, NgramDrafter
from voiceloop.llm.draft.featuredraft import AssistantDrafter, FeatureModel, LayerDrafter
from voiceloop.llm.draft.trained import (
    LoadedHead,
    check_head,
    head_rows,
)
from voiceloop.llm.draft.translated import TranslatedDrafter
from voiceloop.llm.gguf.file import GgufModel, gguf_in
from voiceloop.llm.model.cache import MEMORY_HINT, MIB, CachePool, KvCache, SharedOpening, Slots
from voiceloop.llm.model.decoder import Decoder, TargetDecoder, decoder
from voiceloop.llm.model.llamacpp import LlamaDecoder, LlamaHead
from voiceloop.llm.model.loading import LoadedModel, explained, family, fingerprint
from voiceloop.llm.model.timing import ROOM, row_costs
from voiceloop.llm.pair import (
    SHIPPED,
    STARTER,
    assisting,
    draft_of,
    load_pair,
    placement,
    vocabulary,
    with_head,
)
from voiceloop.llm.replies import ReplyDecoder
from voiceloop.llm.rules.draftpolicy import ALIKE, EVERY, DraftPolicy, gain
from voiceloop.llm.rules.sampling import Penalties, Sampling
from voiceloop.llm.text.messages import SPOKEN
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.text.translation import shared, unspeakable
from voiceloop.llm.tokenhistory import TokenHistory
from voiceloop.placement import (
    URGENT,
    MemoryPart,
    memory_for,
    memory_for_model,
    own_stream,
)
from voiceloop.settings.config import LlmConfig

logger = logging.getLogger(__name__)

GGUF_BUFFERS = 150_000_000
"""Measured bytes that llama.cpp takes beside the weights for passes and caches."""

WORTH = 1.1
"""The expected gain from which a shipped draft is used with llama.cpp."""


class SpeculativeLlm:
    """A language model that decodes speculatively; implements `voiceloop.engines.Llm`.

    Its attributes are shared by all of its conversations.
    """

    metered = False
    acts = False

    def __init__(
        self,
        target: LoadedModel,
        draft: LoadedModel | LoadedHead | None,
        config: LlmConfig,
        capture: Capture | None = None,
    ) -> None:
        """Build the decoders, which take the weights out of `target` and `draft`. Rounds are
        captured on CUDA or if `capture` is given, but not with a kind of draft that does not allow
        it.

        Raises EngineError for a draft that does not suit the target, ModelCorrupt for weights with
        which a pass gives no finite numbers, OutOfMemory, and the errors of `find_hook`.
        """
        self.name = config.target
        self._config = config
        self._hook = find_hook(config)
        self._tokenizer = target.tokenizer
        self._template = ChatTemplate(target.tokenizer, target.name)
        self._eos = target.eos | self._template.closing
        _check_rows(target, self._template)
        self.fingerprint = fingerprint(target.model, self._template)
        own = recall(self.fingerprint, cache_folder())
        self.family = family(target)
        self.calibrations = of_family(self.family) | own
        self.borrowed = set(self.calibrations) - set(own)
        self.system = system_prompt(config, self._template)
        vocab = vocabulary(target)
        self._unspeakable = unspeakable(target.tokenizer.get_vocab())
        if isinstance(draft, LoadedModel):
            _check_size(target, draft)
        longest = draft.longest if isinstance(draft, LoadedModel) else None
        self._capacity = min(filter(None, (config.context, target.longest, longest)))
        headed = with_head(target, config)
        draft = draft if headed is None else None
        rows: Tensor | None = None
        costs: Mapping[int, float] | None = None
        if isinstance(draft, LoadedHead) and self._may_leave_out(target):
            plain = _checked(target, vocab, self._capacity)
            costs = row_costs(plain, min(self._capacity, ROOM))
            step = draft.parameters / target.parameters
            if gain(draft.card.accepted[0], step, costs) < WORTH:
                draft = None
        if isinstance(draft, LoadedHead):
            check_head(draft, target, vocab)
            rows = head_rows(target, draft.tokens)
        self._target = _checked(
            target,
            vocab,
            self._capacity,
            features=rows is not None,
            ahead=headed or assisting(draft, target),
        )
        if headed is not None:
            self._drafter = LayerDrafter(LlamaHead(headed, vocab), self._capacity, self._eos)
        else:
            self._drafter = self._drafts(target, draft, rows, vocab)
        Penalties(self._sampling(0), vocab, self._target.device)  # makes the mask that all share
        self._pool, self._opening = CachePool(config.cache_mb * MIB), SharedOpening()
        if capture is None and self._target.device.type == "cuda":
            capture = CudaGraphs()
        captures = self._drafter is None or self._drafter.captures
        if capture is not None and not captures:
            logger.warning(
                "no rounds are captured with this draft of %s; with llm.draft none they are, which "
                "may be faster",
                config.target,
            )
        self._captured = self._rounds(capture) if capture is not None and captures else None
        fixed = config.num_speculative_tokens
        step = self._drafter.parameters / self._target.parameters if self._drafter else 0.0
        # Rounds take and give about the same in all conversations, so one policy serves them all.
        self._policy = DraftPolicy(
            None if fixed == "auto" else fixed,
            step,
            costs or row_costs(self._target, min(self._capacity, ROOM))
            if self._drafter and fixed == "auto"
            else ALIKE,
            LENGTHS if self._captured else EVERY,
            branches=self._branches(),
            acceptance=self._drafter.acceptance if self._drafter else 0.0,
        )

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> SpeculativeConversation:
        """Begin a conversation. `system` and `seed`, if given, replace the configured ones.

        Raises OutOfMemory.
        """
        with memory_for("another conversation", MEMORY_HINT):
            return self._conversation(
                self.system if system is None else system, self._seed() if seed is None else seed
            )

    def _may_leave_out(self, target: LoadedModel) -> bool:
        """Tell whether a trained draft is left out if it is not worth its costs: if it is used only
        because it ships. With a draft, llama.cpp computes logits for each row of a prompt, and
        several rows may cost nearly as much as several passes."""
        auto = self._config.num_speculative_tokens == "auto"
        return auto and draft_of(self._config) == SHIPPED and isinstance(target.model, GgufModel)

    def _branches(self) -> bool:
        """Tell whether drafts may be trees. Captured rounds and llama.cpp take only chains."""
        drafter, how = self._drafter, self._config.draft_tree
        able = drafter is not None and drafter.branches and self._captured is None
        able = able and not isinstance(self._target, LlamaDecoder)
        wanted = how == "on" or (how == "auto" and isinstance(drafter, LayerDrafter))
        return able and wanted

    def _seed(self) -> int:
        """Return the configured seed, or a random one for each conversation."""
        seed = self._config.seed
        return SystemRandom().getrandbits(32) if seed == "auto" else seed

    def _rounds(self, capture: Capture) -> Captured:
        """Make the captured rounds for all conversations. The number of slots is what fits into the
        budget `llm.cache_mb`.

        The usual rounds are captured now. So this must be called on the model's own thread and
        stream.
        """
        drafter = self._drafter
        models = [self._target, *([drafter.model] if isinstance(drafter, ModelDrafter) else [])]
        group = self._capacity * sum(map(_row_bytes, models))
        count = max(1, self._config.cache_mb * MIB // max(1, group))
        target, *draft = (PlacedModel(model, Slots(count, self._capacity)) for model in models)
        work = FixedRound(target, draft[0] if draft else None, self._sampling(0))
        captured = Captured(work, capture)
        with memory_for("what rounds compute", MEMORY_HINT):
            captured.prepare()
        return captured

    def _sampling(self, seed: int) -> Sampling:
        config = self._config
        return Sampling(
            temperature=config.temperature,
            top_k=config.top_k,
            top_p=config.top_p,
            min_p=config.min_p,
            seed=seed,
            repetition_penalty=config.repetition_penalty,
            presence_penalty=config.presence_penalty,
            frequency_penalty=config.frequency_penalty,
            banned=self._unspeakable,
        )

    def _conversation(self, system: str, seed: int) -> SpeculativeConversation:
        config, sampling = self._config, self._sampling(seed)
        work = self._captured and self._captured.work
        cache = KvCache(self._capacity, work and work.target.slots)
        slots = work.draft_model.slots if work and work.draft_model else None
        drafter = self._drafter
        draft = None if drafter is None else drafter.draft(sampling, cache, slots)
        speculator = Speculator(
            self._target,
            draft,
            self._policy,
            sampling,
            cache,
            captured=self._captured,
            ends=self._template.ends,
            opening=self._opening,
        )
        template, hook = self._template, self._hook
        decoder = ReplyDecoder(
            TokenHistory(speculator, template, system, config.max_new_tokens),
            self._tokenizer,
            eos=self._eos,
            stop=config.stop,
            hook=hook and hook(speculator, self._target, sampling, template, self._eos),
        )
        caches = (cache, *(() if draft is None else draft.caches))
        return SpeculativeConversation(decoder, self._pool, caches)

    def _drafts(
        self,
        target: LoadedModel,
        draft: LoadedModel | LoadedHead | None,
        rows: Tensor | None,
        vocab: int,
    ) -> Drafter | None:
        """Build the drafter, if any. For a trained draft, `rows` are rows of the target's head."""
        config, capacity, ends = self._config, self._capacity, self._eos
        if draft is None:
            return None if draft_of(config) == "none" else NgramDrafter(self._target.device)
        if isinstance(draft, LoadedHead):
            assert rows is not None, "they were kept"
            return LayerDrafter(FeatureModel(draft, rows, self._target, capacity), capacity, ends)
        if (assistant := assisting(draft, target)) is not None:
            return AssistantDrafter(assistant.parameters, vocab, capacity, ends)
        ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
        if ours == theirs:
            return ModelDrafter(_checked(draft, vocab, capacity), capacity, ends)
        model = _checked(draft, vocabulary(draft), capacity)
        same = {own: meant for own, meant in shared(ours, theirs).items() if meant < vocab}
        tokenizers = target.tokenizer, draft.tokenizer
        return TranslatedDrafter(model, tokenizers, same, vocab, capacity, ends)


def system_prompt(config: LlmConfig, template: ChatTemplate) -> str:
    """Return the system prompt of `config`. If it is `auto`, the prompt is `SPOKEN`, or empty for a
    template without a place for it. The starter has none either, as in its training."""
    if config.system != "auto":
        return config.system
    return SPOKEN if config.target != "starter" and template.takes_system else ""


def speculative(config: LlmConfig) -> SpeculativeLlm:
    """Build the engine that `config` describes. This must be called on the thread that will run it.

    On a GPU, the passes of these models have priority over those of other models: they are short,
    and a reply waits for each. Raises the errors of `load_pair`, and EngineError for models that do
    not fit together.
    """
    own_stream(placement(config)[0], URGENT)
    return SpeculativeLlm(*load_pair(config), config)


def gguf_bytes(stored: int) -> int:
    """Return the memory that llama.cpp takes on a CPU for a GGUF file of `stored` bytes. It keeps
    most weights twice, for products in blocks."""
    return int(1.9 * stored) + GGUF_BUFFERS


def footprint(config: LlmConfig, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the models take on `device`, estimated from the sizes of their files.

    On a CPU torch keeps large matrices in 16 bits and other weights in 32. Caches are counted only
    on a GPU, which sets aside all of `llm.cache_mb`. Raises the errors of `placement`, and of
    `find` for a model that does not exist.
    """
    if placement(config)[0].type != device:
        return
    for role, name in (("target", config.target), ("draft", draft_of(config))):
        if name in ("none", "ngram", SHIPPED):
            continue
        folder = bundled(STARTER[role]) if name == "starter" else find(name, "llm")
        file = gguf_in(folder)
        files = [file] if file else folder.glob("*.safetensors")
        stored = sum(one.stat().st_size for one in files)
        if device == "cpu":
            stored = gguf_bytes(stored) if file else int(1.5 * stored)
        yield MemoryPart(role, stored)
    if device == "cuda":
        yield MemoryPart("key-value cache", config.cache_mb * MIB)


def _check_rows(target: LoadedModel, template: ChatTemplate) -> None:
    """Raise ModelCorrupt if the chat template writes a token that the model has no row for."""
    if missing := [token for token in sorted(target.rowless) if template.writes(token)]:
        raise ModelCorrupt(
            f"the chat template of '{target.name}' writes {missing[0]}, which its model never saw",
            "use the tokenizer and the template that the model was trained with",
        )


def _check_size(target: LoadedModel, draft: LoadedModel) -> None:
    vocabulary(draft)
    if draft.parameters > target.parameters:
        raise EngineError(
            f"the draft '{draft.name}' is larger than its target '{target.name}'",
            "swap llm.target and llm.draft, or set llm.draft to none",
        )


def _checked(
    loaded: LoadedModel,
    vocab: int,
    capacity: int,
    *,
    features: bool = False,
    ahead: GgufModel | None = None,
) -> TargetDecoder:
    """Build the model's decoder, and try it with one pass. Raises ModelCorrupt if the pass gives
    infinite numbers or NaN."""
    with explained(loaded.name), memory_for_model(loaded.name):
        built = decoder(loaded.model, vocab, capacity, features=features, ahead=ahead)
        ids = torch.zeros(4, dtype=torch.long, device=built.device)
        finite = bool(built.forward(ids, KvCache(4), 1).isfinite().all())
    if not finite:
        raise ModelCorrupt(
            f"the model '{loaded.name}' is damaged: its weights are not numbers",
            "download or copy it again",
        )
    return built


def _row_bytes(model: Decoder) -> int:
    """Return the bytes of one row of the model's cache."""
    cache = KvCache(1)
    model.forward(torch.zeros(1, dtype=torch.long, device=model.device), cache, 1)
    return cache.nbytes
