"""What conversions make is what it was made of: the same weights, tokens and sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from tests.conftest import lacking
from voiceloop.catalog.convert import SPLITS, convert
from voiceloop.catalog.names import find
from voiceloop.catalog.store import Store
from voiceloop.errors import EngineError, ModelCorrupt, VoiceloopError

pytestmark = pytest.mark.models

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


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    for package in ("gguf", "accelerate", "onnx"):
        if find_spec(package) is None:
            lacking(f"{package} is not installed: pip install 'voiceloop[convert]'")


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


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16"])
def test_weights_are_rounded_once_to_sixteen_bits(kind: str, tmp_path: Path) -> None:
    import gguf

    words = tokenizer("smollm")
    model = network(words.get_vocab_size())
    write_gguf(tmp_path / "small.gguf", model, words, "smollm", kind)
    convert("gguf", tmp_path, tmp_path / "to")
    loaded: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "to", dtype="auto")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "small.gguf").tensors}
    for name, written in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"),
        ("lm_head.weight", "output.weight"),
    ):
        tensor = tensors[written]
        exact = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        assert torch.equal(loaded.state_dict()[name], exact.bfloat16()), name


Made = Callable[[str], tuple[Path, Tokenizer, LlamaForCausalLM]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Folders of converted models, and what they were made of."""
    ready: dict[str, tuple[Path, Tokenizer, LlamaForCausalLM]] = {}

    def make(pre: str) -> tuple[Path, Tokenizer, LlamaForCausalLM]:
        if pre not in ready:
            folder = tmp_path_factory.mktemp("gguf")
            words = tokenizer(pre)
            model = network(words.get_vocab_size())
            (folder / "from").mkdir()
            write_gguf(folder / "from" / "small.gguf", model, words, pre)
            convert("gguf", folder / "from", folder / "to")
            ready[pre] = folder / "to", words, model
        return ready[pre]

    return make


def test_the_converted_model_computes_what_the_original_does(made: Made) -> None:
    folder, _, model = made("smollm")
    loaded: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    assert loaded.dtype == torch.bfloat16
    original = model.state_dict()
    assert loaded.state_dict().keys() == original.keys()
    for name, weights in loaded.float().state_dict().items():
        assert torch.equal(weights, original[name]), name
    ids = torch.arange(3, 40)[None]
    with torch.inference_mode():  # the norms' epsilon has passed through float32
        assert torch.allclose(loaded(ids).logits, model(ids).logits, atol=1e-5)
    assert loaded.generation_config.eos_token_id == 2


@pytest.mark.parametrize("pre", SPLITS)
def test_the_converted_tokenizer_splits_text_as_the_original_does(made: Made, pre: str) -> None:
    folder, words, _ = made(pre)
    loaded = AutoTokenizer.from_pretrained(folder)

    @settings(max_examples=200)
    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
    def same(text: str) -> None:
        assert loaded.encode(text, add_special_tokens=False) == words.encode(text).ids
        assert loaded.decode(words.encode(text).ids, clean_up_tokenization_spaces=False) == text

    same()
    turn = "<|im_start|>user\nHi<|im_end|>\n"
    assert loaded.encode(turn, add_special_tokens=False) == words.encode(turn).ids
    chat = [{"role": "user", "content": "Hi"}]
    assert loaded.apply_chat_template(chat, tokenize=False) == turn
    assert (loaded.eos_token, loaded.bos_token) == ("<|im_end|>", "<|im_start|>")


def test_digits_would_be_split_otherwise_without_the_files_own_way(made: Made) -> None:
    """What the table of splits is for: an architecture's usual tokenizer is not the model's."""
    _, digits, _ = made("smollm")
    _, plain, _ = made("gpt-2")
    text = "\n 7"
    assert digits.pre_tokenizer.pre_tokenize_str(text) != plain.pre_tokenizer.pre_tokenize_str(text)


def test_an_unknown_way_of_splitting_is_refused(tmp_path: Path) -> None:
    words = tokenizer("gpt-2")
    model = network(words.get_vocab_size())
    write_gguf(tmp_path / "small.gguf", model, words, "somebody-elses")
    with pytest.raises(EngineError, match="splits text as 'somebody-elses' does"):
        convert("gguf", tmp_path, tmp_path / "to")


@pytest.mark.parametrize("body", [b"", b"GGUF", b"not a model" * 100])
def test_a_file_that_is_none_is_one_line(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(body)
    with pytest.raises(ModelCorrupt, match=r"bad.gguf is damaged, or of a kind"):
        convert("gguf", tmp_path, tmp_path / "to")


def test_a_file_that_is_none_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store(tmp_path / "models")
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    for _ in range(2):
        with pytest.raises(ModelCorrupt):
            find(str(tmp_path / "bad.gguf"), "llm", store)
    assert not store.models() and not list(store.root.glob(".partial/*"))


def test_a_disk_that_fills_up_is_one_line(made: Made, small_disk: Path) -> None:
    folder, _, _ = made("smollm")
    with pytest.raises(VoiceloopError, match=f"the disk of {small_disk / 'to'} is full"):
        convert("gguf", folder.parent / "from", small_disk / "to")


def test_a_gguf_file_is_converted_once(made: Made, tmp_path: Path) -> None:
    folder, _, _ = made("smollm")
    file = folder.parent / "from" / "small.gguf"
    store = Store(tmp_path / "models")
    first = find(str(file), "llm", store)
    assert (first / "model.safetensors").is_file()
    before = (first / "model.safetensors").stat().st_mtime_ns
    assert find(str(file), "llm", store) == first
    # The same bytes by another name are the same model.
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(file.read_bytes())
    assert find(str(copy), "llm", store) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == before
    assert len(store.models()) == 1
