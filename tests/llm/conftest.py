"""Tiny random models and a byte-level tokenizer, built in code; nothing is downloaded.

Weights are drawn wide, so that the next token depends on the whole context and is fairly sure;
float64, so that no two ways of computing a logit can disagree about which is the largest.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GptOssConfig,
    GraniteConfig,
    Llama4TextConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Phi3Config,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)

from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.decode.captured import Captured
from voiceloop.llm.decode.hook import MakeHook
from voiceloop.llm.decode.speculate import Speculator
from voiceloop.llm.draft.drafts import ChainDraft, ModelDraft
from voiceloop.llm.draft.featuredraft import FeatureDraft, FeatureModel
from voiceloop.llm.draft.trained import FUSE, DraftCard, DraftShape, LoadedHead
from voiceloop.llm.model.attention import Branches, SlotPosition
from voiceloop.llm.model.cache import CachePool, KvCache, SharedOpening
from voiceloop.llm.model.decoder import CHUNK, Decoder, TargetDecoder, decoder
from voiceloop.llm.replies import ReplyDecoder
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.verify import Tree
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.tokenhistory import TokenHistory

CONTEXT = 512
BOTH_WAYS = ("llama", "gpt2", "windowed-gemma3")
"""Kinds of models that are tried in captured rounds as well; the others in `make test-full`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        case = getattr(item, "callspec", None)
        told = {} if case is None else case.params
        if told.get("_rounds") == "captured" and told.get("kind", "llama") not in BOTH_WAYS:
            item.add_marker(pytest.mark.full)


TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{{- message.content | trim if message.role == 'user' else message.content -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
CORPUS = [
    "What is the capital of France? The capital of France is Paris.",
    "Tell me a short story about the sea, please. Once upon a time there was a sailor.",
    "What time is it? It is a quarter past nine. Thank you, that was helpful.",
]


def build_tokenizer(template: str = TEMPLATE, vocab: int = 340) -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(CORPUS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"])
    tokenizer.chat_template = template
    return tokenizer


SIZES = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}
LAYER = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
"""Of a layer that drafts."""
LLAMA = SIZES | HEADS | {"max_position_embeddings": CONTEXT}


def config(kind: str, vocab: int) -> Any:
    wide: dict[str, Any] = {"vocab_size": vocab, "initializer_range": 0.25}
    match kind:
        case "llama":
            return LlamaConfig(**LLAMA, **wide)
        case "qwen2":
            heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
            tied = {"max_position_embeddings": CONTEXT, "tie_word_embeddings": True}
            return Qwen2Config(**SIZES, **wide, **heads, **tied)
        case "qwen3":
            return Qwen3Config(**LLAMA, **wide)
        case "mistral":
            return MistralConfig(**LLAMA, **wide, sliding_window=None)
        case "smollm3":
            return SmolLM3Config(**LLAMA, **wide, no_rope_layers=[1, 0], pad_token_id=0)
        case "olmo2":
            return Olmo2Config(**LLAMA, **wide)
        case "granite":
            return GraniteConfig(**LLAMA, **wide, embedding_multiplier=3.0, residual_multiplier=0.5)
        case "gpt2":
            return GPT2Config(n_embd=48, n_layer=2, n_head=4, n_positions=CONTEXT, **wide)
        case "gemma":
            return GemmaConfig(**LLAMA, **wide)
    return windowed_config(kind, wide)


def windowed_config(kind: str, wide: dict[str, Any]) -> Any:
    match kind:
        case "windowed-mistral":
            return MistralConfig(**LLAMA, **wide, sliding_window=WINDOW)
        case "windowed-phi3":
            return Phi3Config(**LLAMA, **wide, sliding_window=WINDOW, pad_token_id=0)
        case "windowed-qwen2" | "windowed-qwen3":
            # The first layer sees everything, the second a window.
            some: Any = {"use_sliding_window": True, "max_window_layers": 1}
            some["sliding_window"] = WINDOW
            if kind == "windowed-qwen3":
                return Qwen3Config(**LLAMA, **wide, **some)
            heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
            return Qwen2Config(**SIZES, **wide, **heads, **some, max_position_embeddings=CONTEXT)
        case "windowed-gemma2":
            return Gemma2Config(**LLAMA, **wide, sliding_window=WINDOW)
        case "windowed-gemma3":
            kinds = ["sliding_attention", "full_attention"]
            # The scale of products is not the root of a head's size, as in the largest of them.
            scale: Any = {"query_pre_attn_scalar": 7}
            return Gemma3TextConfig(
                **LLAMA, **wide, **scale, sliding_window=WINDOW, layer_types=kinds
            )
        case "windowed-gpt-oss":
            experts: Any = {"num_local_experts": 4, "num_experts_per_tok": 2}
            # Its quicker ways to multiply know no double precision.
            plain: Any = {"experts_implementation": "eager"}
            return GptOssConfig(**LLAMA, **wide, **experts, **plain, sliding_window=WINDOW)
        case "windowed-llama4":
            # It sees the chunk of so many tokens that it is in.
            dense: Any = {"moe_layers": [], "no_rope_layers": [1, 1], "intermediate_size_mlp": 64}
            return Llama4TextConfig(**LLAMA, **wide, **dense, attention_chunk_size=WINDOW)
    raise ValueError(kind)


PLAIN = ("llama", "qwen2", "qwen3", "mistral", "smollm3")
"""Those that are read without transformers."""
LEAN = (*PLAIN, *(f"windowed-{kind}" for kind in ("mistral", "qwen2", "qwen3", "gemma3")))
KINDS = (*PLAIN, "gpt2", "gemma", "olmo2", "granite")
WINDOW = 8
"""Tokens that layers with a sliding window see, themselves included."""
WINDOWED = tuple(
    f"windowed-{kind}"
    for kind in ("mistral", "phi3", "qwen2", "qwen3", "gemma2", "gemma3", "gpt-oss", "llama4")
)


def build_model(
    kind: str, vocab: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> PreTrainedModel:
    return drawn(config(kind, vocab), dtype, seed)


def drawn(shape: Any, dtype: torch.dtype, seed: int = 0) -> PreTrainedModel:
    """A model of random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(shape)
        for name, weight in model.named_parameters():
            if name.endswith("bias"):  # transformers begins them at zero
                torch.nn.init.normal_(weight, std=0.25)
    return model.to(dtype).eval()


def near(a: Tensor, b: Tensor, apart: float = 1e-5) -> bool:
    """Whether they are the same logits, up to a part of the largest: by default what is promised of
    other numbers of rows."""
    return a.shape == b.shape and bool((a - b).abs().max() <= apart * b.abs().max())


class Wrong:
    """A draft that knows what the target would say and always says the token after it."""

    def __init__(self, inner: Decoder) -> None:
        self.inner = inner
        self.vocab, self.parameters, self.device = inner.vocab, inner.parameters, inner.device
        self.dtype, self.attends_bucket, self.pass_bytes = inner.dtype, inner.attends_bucket, 0
        self.chunk = inner.chunk

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        places = torch.arange(cache.length, cache.length + len(ids))
        return self.off(self.inner.forward(ids, cache, keep), places[-keep:])

    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        return self.off(self.inner.forward_at(ids, place, keep), place.positions(len(ids))[-keep:])

    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        places = Branches(cache.length, len(ids), tree, ids.device).positions
        return self.off(self.inner.forward_tree(ids, cache, tree, keep), places[-keep:])

    def off(self, logits: Tensor, places: Tensor) -> Tensor:
        """The logits after rows at these places, made wrong."""
        best = logits.argmax(-1, keepdim=True)
        return torch.full_like(logits, -1e4).scatter(-1, (best + 1) % self.vocab, 0.0)


class Unsteady(Wrong):
    """A draft that is right except at every third position."""

    def off(self, logits: Tensor, places: Tensor) -> Tensor:
        return torch.where((places % 3 == 0).unsqueeze(1), logits.roll(1, -1), logits)


class Trees(DraftPolicy):
    """Always the same trees, one after the other."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        super().__init__(None, 0.1)
        self.trees, self.rounds = trees, 0
        self.paths = list[tuple[int, ...]]()
        """What was accepted."""

    def next(self, position: int) -> Tree:
        self.rounds += 1
        return self.trees[self.rounds % len(self.trees)]

    def observe(
        self, tree: Tree, accepted: Sequence[int], draft_ms: float, target_ms: float
    ) -> None:
        assert not accepted or tree.paths[accepted[-1]] == tuple(accepted)
        self.paths.append(tuple(accepted))


class Scripted:
    """A model that says given replies, in order, and then ends its turn.

    Its keys are the tokens themselves: what it says next follows from what the cache holds, so a
    cache that holds the wrong rows leads to the wrong words.
    """

    def __init__(self, template: ChatTemplate, tokenizer: Any, replies: list[str]) -> None:
        self.vocab, self.parameters, self.device = len(tokenizer), 1, torch.device("cpu")
        self.pass_bytes, self.chunk = 0, CHUNK
        self.seen: list[list[int]] = []
        """The sequence after each pass."""
        self._header = template.user_to_reply
        self._replies = [[*template.encode(text), tokenizer.eos_token_id] for text in replies]

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        rows = ids.view(-1, 1, 1)
        prefix = cache.extend(0, rows)[0].flatten().tolist()
        cache.advance(len(ids))
        self.seen.append(prefix)
        chosen = [self._next(prefix[: len(prefix) - back]) for back in range(keep - 1, -1, -1)]
        return torch.nn.functional.one_hot(torch.tensor(chosen), self.vocab).double()

    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        """Whoever draws from it at all, draws the same."""
        assert tree.is_chain
        return self.forward(ids, cache, keep)

    def _next(self, prefix: list[int]) -> int:
        n = len(self._header)
        begun = [i + n for i in range(len(prefix) - n + 1) if prefix[i : i + n] == self._header]
        if not begun or len(begun) > len(self._replies):
            return 0
        reply = self._replies[len(begun) - 1]
        return reply[min(len(prefix) - begun[-1], len(reply) - 1)]


@dataclass
class Workshop:
    """Makes models, decoders and conversations."""

    tokenizer: Any
    template: ChatTemplate
    _models: dict[tuple[str, int], PreTrainedModel] = field(default_factory=dict)
    _decoders: dict[tuple[str, int, bool], TargetDecoder] = field(default_factory=dict)
    _layers: dict[str, FeatureModel] = field(default_factory=dict)

    @property
    def vocab(self) -> int:
        return len(self.tokenizer)

    def model(self, kind: str = "llama", seed: int = 0) -> PreTrainedModel:
        """A model in float64, to be used as it is."""
        if (kind, seed) not in self._models:
            self._models[kind, seed] = build_model(kind, self.vocab, seed)
        return self._models[kind, seed]

    def decoder(
        self, kind: str = "llama", seed: int = 0, *, features: bool = False
    ) -> TargetDecoder:
        """The decoder of the same model; it keeps nothing of what it is fed."""
        if (kind, seed, features) not in self._decoders:
            whole = copy.deepcopy(self.model(kind, seed))
            made = decoder(whole, self.vocab, CONTEXT, features=features)
            self._decoders[kind, seed, features] = made
        return self._decoders[kind, seed, features]

    def layer(self, kind: str = "llama") -> FeatureModel:
        """A layer that drafts for the decoder of that kind with features, from random weights; it
        mostly guesses that what was said last is said again."""
        if kind in self._layers:
            return self._layers[kind]
        model: Any = self.model(kind)
        hidden, generator = model.config.hidden_size, torch.Generator().manual_seed(3)
        heads, groups = LAYER["num_attention_heads"], LAYER["num_key_value_heads"]
        shape = DraftShape(
            hidden=hidden, heads=heads, groups=groups, dim=LAYER["head_dim"], inner=24
        )
        weights = {
            name: torch.randn(size, generator=generator, dtype=torch.float64) / size[-1] ** 0.5 / 4
            if len(size) > 1
            else torch.ones(size, dtype=torch.float64)
            for name, size in shape.weights().items()
        }
        weights[FUSE][:, hidden:] += torch.eye(hidden, dtype=torch.float64)
        tokens = torch.arange(1, self.vocab, 2)
        head = LoadedHead("layer", DraftCard(kind, "", shape), weights, tokens)
        rows = model.get_output_embeddings().weight.detach()[tokens]
        made = FeatureModel(head, rows, self.decoder(kind, features=True), CONTEXT)
        self._layers[kind] = made
        return made

    def single(self, kind: str) -> tuple[PreTrainedModel, Decoder]:
        """Both in float32."""
        model = build_model(kind, self.vocab, 0, torch.float32)
        return model, decoder(copy.deepcopy(model), self.vocab, CONTEXT)

    def scripted(self, *replies: str) -> Scripted:
        return Scripted(self.template, self.tokenizer, list(replies))

    def draft(self, name: str, kind: str = "llama") -> Decoder | None:
        match name:
            case "none":
                return None
            case "same":
                return self.decoder(kind)
            case "random":
                return self.decoder(kind, seed=1)
            case "wrong":
                return Wrong(self.decoder(kind))
            case "unsteady":
                return Unsteady(self.decoder(kind))
        raise ValueError(name)

    def conversation(
        self,
        target: Decoder,
        draft: Decoder | FeatureModel | None = None,
        sampling: Sampling | None = None,
        *,
        length: int | None = None,
        policy: DraftPolicy | None = None,
        system: str = "",
        max_new_tokens: int = 32,
        capacity: int = CONTEXT,
        eos: frozenset[int] | None = None,
        template: ChatTemplate | None = None,
        pool: CachePool | None = None,
        opening: SharedOpening | None = None,
        stop: tuple[str, ...] = (),
        captured: Captured | None = None,
        hook: MakeHook | None = None,
    ) -> SpeculativeConversation:
        sampling = sampling or Sampling()
        eos = frozenset([self.tokenizer.eos_token_id]) if eos is None else eos
        placed = captured and captured.work.draft_model
        slots = placed.slots if placed else None
        cache = KvCache(capacity, captured and captured.work.target.slots)
        proposes: ChainDraft | None = None
        if isinstance(draft, FeatureModel):
            proposes = FeatureDraft(draft, cache, sampling, capacity, eos)
        elif draft is not None:
            proposes = ModelDraft(draft, sampling, capacity, eos, slots)
        policy = policy or DraftPolicy(length, 0.1)
        template = template or self.template
        speculator = Speculator(
            *(target, proposes, policy, sampling, cache),
            captured=captured,
            ends=template.ends,
            opening=opening,
        )
        decoder = ReplyDecoder(
            TokenHistory(speculator, template, system, max_new_tokens),
            self.tokenizer,
            eos=eos,
            stop=stop,
            hook=hook and hook(speculator, target, sampling, template, eos),
        )
        caches = (speculator.cache, *([proposes.cache] if proposes else []))
        return SpeculativeConversation(decoder, pool or CachePool(0), caches)


@pytest.fixture(scope="session")
def workshop() -> Workshop:
    tokenizer = build_tokenizer()
    return Workshop(tokenizer, ChatTemplate(tokenizer, "tiny"))
