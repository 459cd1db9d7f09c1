"""What conversions make is what it was made of: the same weights, tokens and sound."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from tests.conftest import lacking
from tests.ggufs import PIECES, PUBLISHED, converted, network, tokenizer, write_gguf
from voiceloop.catalog.convert import GGUF, convert, widen
from voiceloop.catalog.names import find
from voiceloop.catalog.splits import CASED, SPLITS, split_of
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import EngineError, ModelCorrupt, VoiceloopError
from voiceloop.llm.model.loading import load_model

pytestmark = pytest.mark.models


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    for package in ("gguf", "accelerate", "onnx"):
        if find_spec(package) is None:
            lacking(f"{package} is not installed: pip install 'voiceloop[convert]'")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16"])
def test_weights_are_rounded_once_to_sixteen_bits(kind: str, tmp_path: Path) -> None:
    import gguf

    words = tokenizer("smollm")
    model = network(words.get_vocab_size())
    write_gguf(tmp_path / "small.gguf", model, words, "smollm", kind)
    converted(tmp_path / "small.gguf", tmp_path / "to")
    before = contents(tmp_path / "to")
    widen(tmp_path / "to")
    assert contents(tmp_path / "to").items() >= before.items()
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
            write_gguf(folder / "small.gguf", model, words, pre)
            converted(folder / "small.gguf", folder / "to")
            widen(folder / "to")
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
def test_the_converted_tokenizer_splits_text_as_the_original_does(tmp_path: Path, pre: str) -> None:
    words = tokenizer(pre)
    write_gguf(tmp_path / "small.gguf", network(words.get_vocab_size()), words, pre)
    converted(tmp_path / "small.gguf", tmp_path / "to")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "to")

    @settings(max_examples=300)
    @given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=12))
    def same(pieces: list[str]) -> None:
        text = "".join(pieces).encode("utf-8", "ignore").decode()
        ids = words.encode(text).ids
        assert loaded.encode(text, add_special_tokens=False) == ids
        assert loaded.decode(ids, clean_up_tokenization_spaces=False) == words.decode(ids)

    same()
    turn = "<|im_start|>user\nHi<|im_end|>\n"
    assert loaded.encode(turn, add_special_tokens=False) == words.encode(turn).ids
    chat = [{"role": "user", "content": "Hi"}]
    assert loaded.apply_chat_template(chat, tokenize=False) == turn
    assert (loaded.eos_token, loaded.bos_token) == ("<|im_end|>", "<|im_start|>")


def test_every_way_of_splitting_is_another() -> None:
    """What the table of splits is for: an architecture's usual tokenizer is not the model's."""
    assert SPLITS.keys() == PUBLISHED.keys()
    cut = {
        pre: str([tokenizer(pre).pre_tokenizer.pre_tokenize_str(piece + " 7") for piece in PIECES])
        for pre in PUBLISHED
    }
    alike = {("llama-bpe", "llama3", "llama-v3"), ("qwen2", "deepseek-r1-qwen")}
    assert len(set(cut.values())) == len(cut) - sum(len(names) - 1 for names in alike)


def test_letters_that_have_a_case_are_such() -> None:
    every = [chr(code) for code in (*range(0x20, 0xD800), *range(0xE000, 0x1F000))]
    cased = {one for one in every if unicodedata.category(one) in ("Lu", "Ll", "Lt")}
    split = pre_tokenizers.Split(Regex(f"[{CASED}]"), "removed")
    others = "".join(piece for piece, _ in split.pre_tokenize_str("".join(every)))
    found = {*every} - {*others}
    assert found <= cased
    later = {one for one in cased - found if ord(one) < 0x560}
    assert not later, "Unicode had all of these by then"


@pytest.mark.parametrize("pre", [None, "default", ""])
@pytest.mark.parametrize(
    ("architecture", "usual"), [("qwen2", "qwen2"), ("qwen3", "qwen2"), ("qwen35", "qwen35")]
)
def test_a_file_that_names_no_way_has_its_kinds_where_there_is_one(
    pre: str | None, architecture: str, usual: str
) -> None:
    assert split_of(pre or "", architecture) == SPLITS[usual]


@pytest.mark.parametrize("pre", [None, "default"])
def test_a_file_of_a_kind_with_many_ways_has_to_name_one(pre: str | None, tmp_path: Path) -> None:
    words = tokenizer("llama-bpe")
    write_gguf(tmp_path / "small.gguf", network(words.get_vocab_size()), words, pre)
    with pytest.raises(EngineError, match=r"does not say how|splits text as 'default' does"):
        convert("gguf", tmp_path, tmp_path / "to")


@pytest.mark.parametrize("kind", ["nobody", "mamba9", "llama-of-somebody", ""])
def test_a_kind_of_model_that_is_not_known_is_called_so(kind: str, tmp_path: Path) -> None:
    words = tokenizer("gpt-2")
    model = network(words.get_vocab_size())
    write_gguf(tmp_path / "small.gguf", model, words, "gpt-2", architecture=kind)
    with pytest.raises(EngineError, match=f"of the kind '{kind}', which is not known") as caught:
        convert("gguf", tmp_path, tmp_path / "to")
    assert "damaged" not in caught.value.message


@pytest.mark.parametrize(
    ("ends", "expected"),
    [({}, 2), ({"eot": 0}, [2, 0]), ({"eot": 2}, 2), ({"eot": 1, "eom": 0}, [2, 1, 0])],
)
def test_every_token_that_a_file_says_ends_a_reply_ends_one(
    ends: Any, expected: object, tmp_path: Path
) -> None:
    words = tokenizer("gpt-2")
    model = network(words.get_vocab_size())
    write_gguf(tmp_path / "small.gguf", model, words, "gpt-2", **ends)
    converted(tmp_path / "small.gguf", tmp_path / "to")
    assert json.loads((tmp_path / "to" / "config.json").read_text())["eos_token_id"] == expected
    widen(tmp_path / "to")
    found = load_model(str(tmp_path / "to"), torch.device("cpu"), torch.float32).eos
    assert found == ({expected} if isinstance(expected, int) else set(expected))  # pyright: ignore[reportArgumentType]


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
    store = ModelStore(tmp_path / "models")
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    for _ in range(2):
        with pytest.raises(ModelCorrupt):
            find(str(tmp_path / "bad.gguf"), "llm", store)
    assert not store.models() and not list(store.root.glob(".partial/*"))


def test_a_disk_that_fills_up_is_one_line(made: Made, small_disk: Path) -> None:
    folder, _, _ = made("smollm")
    converted(folder.parent / "small.gguf", small_disk / "to")
    with pytest.raises(VoiceloopError, match=f"the disk of {small_disk / 'to'} is full"):
        widen(small_disk / "to")
    assert not [path for path in (small_disk / "to").iterdir() if "safetensors" in path.name]
    (small_disk / "rest").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    with pytest.raises(VoiceloopError, match=f"the disk of {small_disk / 'too'} is full"):
        converted(folder.parent / "small.gguf", small_disk / "too")


def test_a_gguf_file_is_converted_once(made: Made, tmp_path: Path) -> None:
    folder, _, _ = made("smollm")
    file = folder.parent / "small.gguf"
    store = ModelStore(tmp_path / "models")
    first = find(str(file), "llm", store)
    assert (first / GGUF).samefile(file)
    before = (first / "config.json").stat().st_mtime_ns
    assert find(str(file), "llm", store) == first
    # The same bytes by another name are the same model.
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(file.read_bytes())
    assert find(str(copy), "llm", store) == first
    assert (first / "config.json").stat().st_mtime_ns == before
    assert len(store.models()) == 1
