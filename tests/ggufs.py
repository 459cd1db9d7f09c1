"""Small models as GGUF files, as llama.cpp would write them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from voiceloop.catalog.convert import SPLITS, convert

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PIECES = [
    "\n",
    "\n\n",
    " ",
    "  ",
    "7",
    "12",
    "1984",
    "½",
    "it",
    "'s",
    "'S",
    " IT'S",
    "Äh",
    ".",
    "...",
    " €",
]
"""What the ways of splitting disagree about."""
TEXTS = ["".join(PIECES[i * k % len(PIECES)] for i in range(40)) for k in (1, 3, 5, 7, 11, 13)]


def tokenizer(pre: str) -> Tokenizer:
    """A tokenizer of byte pairs that splits text as GGUF files call `pre`."""
    made = Tokenizer(models.BPE())
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = {
        "gpt-2": plain,
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), plain]),
    }.get(pre) or pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLITS[pre]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 20, trainer)
    return made


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


def write_gguf(
    path: Path, model: LlamaForCausalLM, words: Tokenizer, pre: str, kind: str = "F32"
) -> None:
    """The model as llama.cpp would write it, its matrices of the type `kind`."""
    import gguf
    from gguf.quants import quantize

    quantised = gguf.GGMLQuantizationType[kind]

    config: Any = model.config
    out = gguf.GGUFWriter(path, "llama")
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
    told = json.loads(words.to_str())["model"]
    vocabulary = sorted(told["vocab"], key=told["vocab"].get)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(pre)
    out.add_token_list(vocabulary)
    out.add_token_types([3 if token in CONTROL else 1 for token in vocabulary])
    out.add_token_merges([" ".join(merge) for merge in told["merges"]])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(2)
    out.add_chat_template(TEMPLATE)
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


def converted(file: Path, to: Path) -> None:
    """Convert a user's own file, which stays where it is."""
    with TemporaryDirectory() as source:
        (Path(source) / file.name).symlink_to(file)
        convert("gguf", Path(source), to)
