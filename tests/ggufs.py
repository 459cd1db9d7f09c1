"""Small models as GGUF files, as llama.cpp would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PIECES = (
    "\n|\n\n| |  |\t|\r\n|7|12|1984|\u00bd|\u0663|it|'s|'S| IT'S|don't|\u00c4h|A\u0308h|e\u0301"
    "|x\u0301y|.|...| \u20ac|/|//\n|_a|camelCaseHTML|\u01c5|\u02b0|\u4f60\u597d|\uff0c|\u3002"
    "|\u30ab\u30ca|\ud55c\uad6d|\u0e2a\u0e27\u0e31\u0e2a|\u0928\u092e\u0938\u094d\u0924\u0947"
    "|\u0661\u0662|(x)|``|\U0001f389|\u1f60|\u1fbe|\u212a|\ua66e|\u3000|\uff01a|\u2018q\u2019"
).split("|")
"""What the ways of splitting disagree about."""
TEXTS = ["".join(PIECES[i * k % len(PIECES)] for i in range(50)) for k in (1, 3, 5, 7, 11, 13)]

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_3_5 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT_4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEEPSEEK_3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)


def _cut(*expressions: str) -> dict[str, Any]:
    splits = [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in expressions
    ]
    last = _BYTES | {"use_regex": False}
    return {"type": "Sequence", "pretokenizers": [*splits, last]}


PUBLISHED: dict[str, dict[str, Any]] = {
    "gpt-2": _BYTES | {"use_regex": True},
    "smollm": {"type": "Sequence", "pretokenizers": [_DIGITS, _BYTES | {"use_regex": True}]},
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), _cut(_LLAMA_3)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), _cut(_QWEN_2)),
    "qwen35": _cut(_QWEN_3_5),
    "tekken": _cut(_TEKKEN),
    "gpt-4o": _cut(_GPT_4O),
    "deepseek-v3": _cut(r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _DEEPSEEK_3),
}
"""`pre_tokenizer` in the tokenizer.json of models, by what GGUF files call it."""
COMPOSED, WHOLE = (
    ("qwen2", "deepseek-r1-qwen", "qwen35"),
    ("llama-bpe", "llama3", "llama-v3", "tekken"),
)
"""Those that normalise to NFC, and those whose `ignore_merges` is true."""


def tokenizer(pre: str) -> Tokenizer:
    """A tokenizer of byte pairs that splits text as GGUF files call `pre`.

    Some of its words are not reached by merges.
    """
    made = Tokenizer(models.BPE())
    made.decoder = decoders.ByteLevel()
    made = _with(made, pre_tokenizer=PUBLISHED[pre])
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 20, trainer)
    told = json.loads(made.to_str())["model"]
    merges = [merge for index, merge in enumerate(told["merges"]) if index % 7 != 6]
    reached = set[str](pre_tokenizers.ByteLevel.alphabet())
    kept = list[list[str]]()
    for left, right in merges:
        if {left, right} <= reached:
            kept.append([left, right])
            reached.add(left + right)
    model = told | {"merges": kept, "ignore_merges": pre in WHOLE}
    return _with(made, model=model, normalizer={"type": "NFC"} if pre in COMPOSED else None)


def _with(made: Tokenizer, **parts: object) -> Tokenizer:
    return Tokenizer.from_str(json.dumps(json.loads(made.to_str()) | parts))


def network(vocab: int) -> LlamaForCausalLM:
    """A small model with weights that 16 bits hold."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
        tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    for weights in model.parameters():
        weights.data = weights.data.bfloat16().float()
    return model


def add_words(out: Any, words: Tokenizer, pre: str | None) -> None:
    """Add the tokenizer, whose way of splitting is called `pre`, and the chat template."""
    told = json.loads(words.to_str())["model"]
    vocabulary = sorted(told["vocab"], key=told["vocab"].get)
    out.add_tokenizer_model("gpt2")
    if pre is not None:
        out.add_tokenizer_pre(pre)
    out.add_token_list(vocabulary)
    out.add_token_types([3 if token in CONTROL else 1 for token in vocabulary])
    out.add_token_merges([" ".join(merge) for merge in told["merges"]])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(2)
    out.add_chat_template(TEMPLATE)


def write_gguf(
    path: Path,
    model: LlamaForCausalLM,
    words: Tokenizer,
    pre: str | None,
    kind: str = "F32",
    architecture: str = "llama",
    settings: Mapping[str, bool] | None = None,
    **ends: int,
) -> None:
    """The model as llama.cpp would write it, its matrices of the type `kind`. `settings` are more
    settings; `ends` are tokens such as `eot`."""
    import gguf
    from gguf.quants import quantize

    quantised = gguf.GGMLQuantizationType[kind]

    config: Any = model.config
    out = gguf.GGUFWriter(path, architecture)
    out.add_name("small")
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(5000.0)
    out.add_vocab_size(config.vocab_size)
    add_words(out, words, pre)
    for name, value in (settings or {}).items():
        out.add_bool(name, value)
    for end, index in ends.items():
        out.add_uint32(f"tokenizer.ggml.{end}_token_id", index)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        weights = tensor.numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for part, count in heads.items():
            if part in name:  # llama.cpp rotates neighbours, transformers halves
                rows, columns = weights.shape
                halves = weights.reshape(count, 2, rows // count // 2, columns)
                weights = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))
        written = names.get_name(name, try_suffixes=(".weight",))
        assert written is not None
        if weights.ndim == 1:
            out.add_tensor(written, weights)
        else:
            out.add_tensor(written, quantize(weights, quantised), raw_dtype=quantised)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
