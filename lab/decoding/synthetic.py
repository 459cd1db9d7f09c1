"""Pairs of a target and a draft with real shapes, untrained weights, and a chosen acceptance.

Random weights would not do. A random draft never agrees with a random target, and the two largest
logits of the target are so close that rounding decides between them. So the weights are built. The
words of the vocabulary form a ring. The head of the target is its embedding, shifted by one place.
So after each word the next one of the ring has by far the largest logit, whatever the context adds.
The draft is built in the same way with its own shape, but for a share of the words, drawn once, its
head is wrong.

So each draft token is accepted with the chosen probability, independently of the others, as the
formulas assume. Nothing is looked up or replaced: every weight takes part in every pass. The draft
is the same for transformers' assisted generation, and rounding changes no token. Two things differ
from real models. Acceptance does not depend on the text. And the draft is as sure of its wrong
tokens as of its right ones, so a rule that stops drafting at an unsure token cannot help.
"""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass
from typing import Any, cast

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from voiceloop.errors import ConfigError
from voiceloop.llm.model.loading import LoadedModel, of_transformers
from voiceloop.placement import BUILDING
from voiceloop.settings.schema import suggestion

END = "<|end|>"
"""Token 0. It stands between turns, and is never generated."""
TEMPLATE = (
    "{%- for message in messages -%}{{- message.content -}}"
    "{%- if not loop.last -%}{{- '" + END + "' -}}{%- endif -%}{%- endfor -%}"
)
"""Chat template. A prompt ends with the user's last word, so replies begin at different words of
the ring."""
PEAK = 30.0
"""Logit of the next word of the ring."""
NOISE = 0.05
"""Noise in the weights of a drawn draft, relative to their standard deviation."""
LONGEST = 4096
"""Maximum number of positions of the models."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model of the Llama 3 family or of the Qwen 2 family."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    biased: bool = False
    """True for Qwen 2, whose queries, keys and values have a bias."""


LLAMA_8B = Shape(4096, 14336, 32, 32, 8, 128)
LLAMA_1B = Shape(2048, 8192, 16, 32, 8, 64)
QWEN_7B = Shape(3584, 18944, 28, 28, 4, 128, biased=True)
QWEN_HALF_B = Shape(896, 4864, 24, 14, 2, 64, biased=True)
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]

PAIRS: dict[str, tuple[int, Shape, Shape]] = {
    "tiny": (512, Shape(64, 128, 2, 4, 2, 16), Shape(64, 64, 1, 2, 1, 16)),
    "120m+8m": (32_768, Shape(768, 2048, 12, 12, 4, 64), Shape(192, 512, 4, 3, 1, 64)),
    "1b+0.1b": (128_256, LLAMA_1B, Shape(512, 2048, 8, 8, 2, 64)),
    "7b+0.5b": (151_936, QWEN_7B, QWEN_HALF_B),
    "8b+1b": (128_256, LLAMA_8B, LLAMA_1B),
}
"""Vocabulary size, target and draft of each pair. Names count the weights that a pass reads."""


def synthetic_pair(
    name: str, acceptance: float, device: torch.device, dtype: torch.dtype
) -> tuple[LoadedModel, LoadedModel]:
    """Build a pair of `PAIRS` whose draft tokens are accepted with probability `acceptance`.

    Raises ConfigError for an unknown name.
    """
    vocab = vocabulary(name)
    _, *shapes = PAIRS[name]
    tokenizer = _tokenizer(vocab)
    after = torch.arange(1, vocab).roll(-1)  # what follows words 1, 2, …, vocab - 1
    sizes = name.split("+") if "+" in name else [name, f"{name} draft"]
    target, draft = (
        of_transformers(
            f"synthetic {size}", _model(shape, vocab, follows, device, dtype), tokenizer
        )
        for size, shape, follows in zip(
            sizes, shapes, (after, _slip(after, acceptance)), strict=True
        )
    )
    return target, draft


def vocabulary(name: str) -> int:
    """Return the vocabulary size of a pair of `PAIRS`. Raises ConfigError for an unknown name."""
    if name not in PAIRS:
        raise ConfigError(f"there is no synthetic pair '{name}'", suggestion(name, PAIRS))
    return PAIRS[name][0]


def drawn_pair(
    shape: Shape, vocab: int, device: torch.device, dtype: torch.dtype
) -> tuple[LoadedModel, LoadedModel]:
    """Draw a target with random weights and a draft with the same weights plus noise.

    They are for checks of correctness. The variance of the weights is so large that the next token
    depends on the whole context. So the acceptance is not known, and rounding may change tokens.
    """
    tokenizer = _tokenizer(vocab)
    target = _llama(shape, vocab, device, dtype)
    generator = torch.Generator(device).manual_seed(vocab)
    with torch.no_grad():
        for weight in target.parameters():
            if weight.dim() == 2:
                weight.normal_(std=1.7 / math.sqrt(shape.hidden), generator=generator)
        draft = copy.deepcopy(target)
        for weight in draft.parameters():
            noise = torch.empty_like(weight).normal_(generator=generator)
            weight += NOISE * weight.std() * noise
    return (
        of_transformers("drawn target", target, tokenizer),
        of_transformers("drawn draft", draft, tokenizer),
    )


def synthetic_prompts(vocab: int, count: int, words: int = 32) -> list[str]:
    """Return prompts of random words, the same ones in each call."""
    rng = random.Random(vocab)
    return [" ".join(word(rng.randrange(1, vocab)) for _ in range(words)) for _ in range(count)]


def word(index: int) -> str:
    """Return the text of token `index`: six letters that can be spoken."""
    size = len(SYLLABLES)
    return "".join(SYLLABLES[index // size**place % size] for place in (2, 1, 0))


def _slip(after: Tensor, acceptance: float) -> Tensor:
    """Return `after` with a share of 1 - `acceptance` wrong: these entries are permuted."""
    drawn = torch.randperm(len(after), generator=torch.Generator().manual_seed(1))
    wrong = drawn[: round((1 - acceptance) * len(after))]
    slipped = after.clone()
    slipped[wrong] = after[wrong.roll(1)]
    return slipped


def _tokenizer(vocab: int) -> PreTrainedTokenizerFast:
    words = {END: 0} | {word(index): index for index in range(1, vocab)}
    raw = Tokenizer(models.WordLevel(words, unk_token=END))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=END, pad_token=END, clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@torch.no_grad()
def _model(
    shape: Shape, vocab: int, follows: Tensor, device: torch.device, dtype: torch.dtype
) -> PreTrainedModel:
    """Build a model that generates `follows[i]` after word i + 1."""
    model: Any = _llama(shape, vocab, device, dtype)
    generator = torch.Generator(device).manual_seed(shape.hidden)
    for weight in model.parameters():
        if weight.dim() == 2:
            weight.normal_(std=0.02, generator=generator)
    # All layers together add to a word's embedding about a tenth of its size.
    little = 0.1 / math.sqrt(2 * shape.layers * shape.feed_forward)
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.normal_(std=little, generator=generator)
        layer.mlp.down_proj.weight.normal_(std=little, generator=generator)
    embedding = model.model.embed_tokens.weight.normal_(generator=generator)
    head = model.lm_head.weight.zero_()
    head[follows.to(device)] = embedding[1:] * (PEAK / shape.hidden)
    for weight in model.parameters():
        weight.copy_(weight.bfloat16())  # checkpoints of such sizes come in 16 bits
    return model


def _llama(shape: Shape, vocab: int, device: torch.device, dtype: torch.dtype) -> PreTrainedModel:
    others: dict[str, Any] = {} if shape.biased else {"head_dim": shape.head_dim}
    family = Qwen2Config if shape.biased else LlamaConfig
    config = family(
        vocab_size=vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        **others,
        max_position_embeddings=LONGEST,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    with BUILDING, device:  # weights of eight billion parameters are drawn where they will be used
        return cast(Any, AutoModelForCausalLM).from_config(config, dtype=dtype).eval()
