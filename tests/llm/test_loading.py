"""Folders of models as they are published: they load, or one line says why not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tokenizers import AddedToken
from transformers import BloomConfig, GraniteMoeHybridConfig

from tests.llm.conftest import TEMPLATE, Workshop, build_model, build_tokenizer, drawn
from voiceloop.errors import EngineError, ModelCorrupt, OutOfMemory, VoiceloopError
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.loading import explained, load_model
from voiceloop.llm.pair import vocabulary
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.placement import memory_for_model
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
ADDED = ("<pad>", "<|extra|>")


def save(folder: Path, model: Any, tokenizer: Any) -> Path:
    model.float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def build(folder: Path, draft: str = "none", **options: Any) -> SpeculativeLlm:
    return speculative(
        LlmConfig(target=str(folder), draft=draft, device="cpu", context=200, **options)
    )


def said(llm: SpeculativeLlm, text: str = "What is it?") -> list[int]:
    items = llm.conversation().reply(text, 1)
    return [token for item in items if isinstance(item, TokenBurst) for token in item.ids]


def refused(kind: type[VoiceloopError], folder: Path) -> str:
    """What is said where a model is refused: a line and a hint."""
    with pytest.raises(kind) as caught:
        build(folder)
    error = caught.value
    assert "\n" not in error.message and error.message and error.hint
    return error.message


# ---- what kind of model it is


NO_CHAT = {
    "EAGLE-3": ({"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 64}, "a draft"),
    "speculators": ({"architectures": ["Eagle3DraftModel"], "speculators_config": {}}, "a draft"),
    "DFlash": (
        {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "dflash_config": {}},
        "a draft",
    ),
    "an encoder": (
        {"architectures": ["BertForMaskedLM"], "model_type": "bert"},
        "does not write text: it is a BertForMaskedLM",
    ),
    "a reward model": (
        {"architectures": ["Qwen2ForSequenceClassification"], "model_type": "qwen2"},
        "does not write text",
    ),
    "an embedding model": (
        {"architectures": ["Qwen2Model"], "model_type": "qwen2"},
        "does not write text",
    ),
    "vision alone": ({"model_type": "vit"}, "does not write text: vit"),
    "nobody's": ({"model_type": "no-such-kind"}, "transformers does not know: no-such-kind"),
}


@pytest.mark.parametrize("kind", NO_CHAT)
def test_what_is_no_chat_model_is_called_by_what_it_is(kind: str, tmp_path: Path) -> None:
    config, why = NO_CHAT[kind]
    (tmp_path / "config.json").write_text(json.dumps(config))
    message = refused(EngineError, tmp_path)
    assert why in message and "damaged" not in message


def test_a_hybrid_kind_whose_layers_are_all_attention_is_what_transformers_computes(
    workshop: Workshop, tmp_path: Path
) -> None:
    config = GraniteMoeHybridConfig(
        vocab_size=workshop.vocab, hidden_size=48, intermediate_size=64, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=0, num_experts_per_tok=0,
        shared_intermediate_size=64, layer_types=["attention"] * 4, mamba_n_heads=8,
        mamba_d_head=12, max_position_embeddings=256,
    )  # fmt: skip
    model = drawn(config, torch.float32)
    save(tmp_path, model, build_tokenizer())
    llm = build(tmp_path, max_new_tokens=8)
    ids = torch.arange(3, 33)
    found = llm._target.forward(ids, KvCache(64), 1)
    with torch.inference_mode():
        expected = model(ids[None]).logits[0, -1:]
    assert torch.allclose(found, expected[:, : found.shape[1]], atol=1e-4)
    assert said(llm)


# ---- what ends a reply


ENDS = {
    "chatml": (TEMPLATE, "<|im_end|>"),
    "two tokens": (TEMPLATE.replace("<|im_end|>", "<|stop|><|im_end|>"), "<|stop|>"),
    "between lines": (TEMPLATE.replace("<|im_end|>", "\\n <|stop|>"), "<|stop|>"),
    "only before the next turn": (
        "{% for m in messages %}{{ '<|user|>' if m.role == 'user' else '<|bot|>' }}{{ m.content }}"
        "{% endfor %}{% if add_generation_prompt %}<|bot|>{% endif %}",
        "<|user|>",
    ),
    "another behind the last": (
        "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}"
        "{{ '<|stop|>' if loop.last and m.role == 'assistant' and not add_generation_prompt "
        "else '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}",
        "<|stop|>",
    ),
    "none": (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("special", [True, False])
def test_what_a_template_writes_behind_a_reply_ends_one(name: str, special: bool) -> None:
    text, end = ENDS[name]
    tokenizer: Any = build_tokenizer(text)
    named: Any = [AddedToken(one, special=special) for one in ("<|stop|>", "<|user|>", "<|bot|>")]
    tokenizer.add_tokens(named)
    found = ChatTemplate(tokenizer, "a model").closing
    assert found == ({tokenizer.convert_tokens_to_ids(end)} if end else set())


def test_a_reply_ends_where_the_template_ends_a_turn_whatever_the_files_say(
    workshop: Workshop, tmp_path: Path
) -> None:
    model = build_model("llama", workshop.vocab)
    end = workshop.tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer = build_tokenizer()
    tokenizer.eos_token = "<|endoftext|>"
    model.generation_config.eos_token_id = 0
    save(tmp_path, model, tokenizer)
    loaded = load_model(str(tmp_path), CPU, torch.float32)
    assert end not in loaded.eos
    llm = build(tmp_path, max_new_tokens=8)
    assert llm._eos == loaded.eos | {end}


# ---- tokens without a row


def padded(template: str = TEMPLATE, count: int = 1) -> Any:
    tokenizer = build_tokenizer(template)
    named: Any = [AddedToken(text, special=False) for text in ADDED[:count]]
    tokenizer.add_tokens(named)
    return tokenizer


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("count", [1, 2])
def test_added_tokens_without_a_row_are_no_tokens(
    workshop: Workshop, tmp_path: Path, kind: str, count: int
) -> None:
    model = build_model(kind, workshop.vocab)
    plain = save(tmp_path / "plain", model, workshop.tokenizer)
    more = save(tmp_path / "more", build_model(kind, workshop.vocab), padded(count=count))
    loaded = load_model(str(more), CPU, torch.float32)
    assert vocabulary(loaded) <= loaded.rows and loaded.rowless == set(ADDED[:count])
    assert max(loaded.tokenizer.encode("Hi <pad> and <|extra|>")) < loaded.rows
    assert said(build(more)) == said(build(plain))
    assert said(build(more), "<pad> <|extra|>") == said(build(plain), "<pad> <|extra|>")


@pytest.mark.parametrize("of", ["target", "draft", "both"])
def test_a_pair_whose_tokenizers_were_padded_says_what_its_target_says(
    workshop: Workshop, tmp_path: Path, of: str
) -> None:
    for index, role in enumerate(("target", "draft")):
        tokenizer = padded() if of in (role, "both") else workshop.tokenizer
        save(tmp_path / role, build_model("llama", workshop.vocab, seed=index), tokenizer)
    alone, pair = build(tmp_path / "target"), build(tmp_path / "target", str(tmp_path / "draft"))
    assert type(pair._drafter).__name__ == "ModelDrafter", "the vocabularies are the same"
    assert said(pair) == said(alone)


def test_a_template_that_writes_a_token_without_a_row_is_refused(
    workshop: Workshop, tmp_path: Path
) -> None:
    template = TEMPLATE.replace("'\\n' -}}\n{{- message", "'<pad>\\n' -}}\n{{- message")
    assert template != TEMPLATE
    save(tmp_path, build_model("llama", workshop.vocab), padded(template))
    assert "writes <pad>" in refused(ModelCorrupt, tmp_path)


def test_a_larger_vocabulary_is_still_another_models(workshop: Workshop, tmp_path: Path) -> None:
    save(tmp_path, build_model("llama", workshop.vocab), build_tokenizer(vocab=400))
    assert "its model only" in refused(ModelCorrupt, tmp_path)


# ---- files that are hostile, damaged or unusual


@pytest.mark.parametrize("context", [180, 512])
def test_a_model_that_tells_no_length_takes_what_is_asked_for(
    workshop: Workshop, tmp_path: Path, context: int
) -> None:
    shape = BloomConfig(vocab_size=workshop.vocab, hidden_size=48, n_layer=2, n_head=4)
    save(tmp_path, drawn(shape, torch.float32), workshop.tokenizer)
    config = LlmConfig(target=str(tmp_path), draft="none", device="cpu", context=context)
    llm = speculative(config)
    assert llm._capacity == context
    assert said(llm) == said(speculative(config))


@pytest.fixture
def folder(workshop: Workshop, tmp_path: Path) -> Path:
    return save(tmp_path / "model", build_model("llama", workshop.vocab), workshop.tokenizer)


def change(folder: Path, **told: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | told))


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("where", ["whole", "a part"])
@pytest.mark.parametrize(
    "name",
    ["config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"],
)
def test_files_that_are_nested_too_deep_are_one_line(folder: Path, name: str, where: str) -> None:
    path = folder / name
    path.write_text(DEEP if where == "whole" else f'{{"model_type": "llama", "x": {DEEP}}}')
    refused(ModelCorrupt, folder)


@pytest.mark.parametrize("kind", ["llama", "bloom"])
@pytest.mark.parametrize(
    "told",
    [
        {"num_attention_heads": 0},
        {"num_attention_heads": 7},
        {"hidden_size": -1},
        {"num_hidden_layers": "many"},
        {"vocab_size": None},
        {"rope_parameters": 5},
        {"dtype": "no such"},
        {"architectures": 5},
        {"model_type": ["llama"]},
        {"hidden_act": "no such"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_one_line_or_do_no_harm(
    workshop: Workshop, tmp_path: Path, kind: str, told: dict[str, Any]
) -> None:
    shape = BloomConfig(vocab_size=workshop.vocab, hidden_size=48, n_layer=2, n_head=4)
    model = build_model("llama", workshop.vocab) if kind == "llama" else drawn(shape, torch.float32)
    folder = save(tmp_path, model, workshop.tokenizer)
    change(folder, **told)
    try:
        said(build(folder))
    except VoiceloopError as error:
        assert "\n" not in error.message


@pytest.mark.parametrize(
    "way",
    ["../elsewhere", "a/../../elsewhere", "/etc/passwd", "..", "C:\\weights", "..\\elsewhere"],
)
@pytest.mark.parametrize("index", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_an_index_that_leads_out_of_the_folder_is_refused(
    folder: Path, index: str, way: str
) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere")
    (folder / index).write_text(json.dumps({"weight_map": {"lm_head.weight": way}}))
    assert f"{index} names" in refused(ModelCorrupt, folder)


def test_an_index_may_lead_into_folders_and_over_links(folder: Path) -> None:
    expected = said(build(folder))
    (folder / "parts").mkdir()
    (folder / "model.safetensors").rename(folder.parent / "blob")
    (folder / "parts" / "one.safetensors").symlink_to(folder.parent / "blob")
    weights = dict.fromkeys(["lm_head.weight"], "parts/one.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weights}))
    assert said(build(folder)) == expected


class Program:
    def __reduce__(self) -> Any:
        return print, ("this ran",)


def test_a_pickle_of_more_than_numbers_is_one_line_and_does_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "model.safetensors").unlink()
    for written in (
        lambda path: torch.save({"lm_head.weight": Program()}, path),
        lambda path: path.write_bytes(pickle.dumps(Program())),
        lambda path: path.write_bytes(pickle.dumps({"lm_head.weight": 1})[:-3]),
        lambda path: path.write_bytes(b"\x80\x02c__builtin__\neval\n"),
    ):
        written(folder / "pytorch_model.bin")
        refused(EngineError, folder)
    assert "this ran" not in capsys.readouterr().out


def test_a_pickle_of_numbers_is_read(folder: Path, workshop: Workshop) -> None:
    expected = said(build(folder))
    (folder / "model.safetensors").unlink()
    torch.save(
        build_model("llama", workshop.vocab).float().state_dict(), folder / "pytorch_model.bin"
    )
    assert said(build(folder)) == expected


@pytest.mark.parametrize("key", ["attn_implementation", "experts_implementation"])
@pytest.mark.parametrize(
    "kernel",
    ["somebody/kernel", "kernels-community/flash-attn2:all", "flash_attention_2", "no such"],
)
def test_kernels_that_a_model_names_are_not_fetched(
    workshop: Workshop, tmp_path: Path, key: str, kernel: str
) -> None:
    folder = save(tmp_path, build_model("gemma", workshop.vocab), workshop.tokenizer)
    expected = said(build(folder))
    change(folder, **{key: kernel})
    assert said(build(folder)) == expected
    model = cast(Any, load_model(str(folder), CPU, None, whole=True).model)
    assert model.config._attn_implementation == "sdpa"


RAISED: dict[str, tuple[Callable[[], Exception], type[EngineError]]] = {
    "recursion": (lambda: RecursionError("maximum recursion depth exceeded"), ModelCorrupt),
    "memory": (lambda: MemoryError(), OutOfMemory),
    "a library without room": (
        lambda: ImportError("libx.so: failed to map segment from shared object"),
        OutOfMemory,
    ),
    "a package": (lambda: ImportError("\nit requires sentencepiece\nmore"), EngineError),
    "what is not done": (lambda: NotImplementedError(), ModelCorrupt),
    "a pickle": (lambda: pickle.UnpicklingError("Weights only load failed.\nmore"), EngineError),
}


@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_library_raises_is_one_line(name: str) -> None:
    raised, kind = RAISED[name]
    with pytest.raises(EngineError) as caught, explained("it"), memory_for_model("it"):
        raise raised()
    assert type(caught.value) is kind
    assert "\n" not in caught.value.message and caught.value.hint
