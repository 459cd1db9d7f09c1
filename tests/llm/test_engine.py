"""Models from folders: a pair that suits is loaded, anything else is explained."""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from transformers import LlamaForCausalLM, MambaConfig, Qwen3NextConfig, T5Config

from tests.llm.conftest import TEMPLATE, build_model, build_tokenizer
from tests.llm.replies import Anew
from tests.llm.ties import ties
from voiceloop.errors import (
    EngineError,
    MissingPack,
    ModelCorrupt,
    ModelNotFound,
    OutOfMemory,
    VoiceloopError,
)
from voiceloop.llm.decode import hook
from voiceloop.llm.draft.drafts import ModelDrafter
from voiceloop.llm.engine import SpeculativeLlm, speculative, system_prompt
from voiceloop.llm.model.decoder import LeanDecoder
from voiceloop.llm.model.hf import TransformersDecoder
from voiceloop.llm.pair import load_pair
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.messages import SPOKEN
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models


def save(folder, model, tokenizer):
    model.float().save_pretrained(folder, max_shard_size="100KB")
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(workshop, tmp_path_factory):
    """A target and a draft on disk, the target in several shards."""
    base = tmp_path_factory.mktemp("models")
    target, draft = (copy.deepcopy(workshop.model(seed=seed)) for seed in (0, 1))
    save(base / "target", target, workshop.tokenizer)
    save(base / "draft", draft, workshop.tokenizer)
    assert len(list((base / "target").glob("*.safetensors"))) > 1
    return base


def build(target, draft="none", **options):
    return speculative(LlmConfig(target=str(target), draft=str(draft), device="cpu", **options))


def said(llm, **options):
    conversation = llm.conversation(**options)
    items = conversation.reply("What is it?", 1)
    return [i for b in items if isinstance(b, TokenBurst) for i in b.ids], conversation


def same(llm, alone, talk, temperature=0.0, seed=0):
    """That the first replies of two conversations are the same, but for a near tie."""
    start = talk._history.reply.start
    assert alone.ids[:start] == talk.ids[:start]
    sampling = Sampling(temperature, seed=seed)
    return ties(llm._target, sampling, alone.ids[:start], alone.ids[start:], talk.ids[start:]) <= 1


def test_a_pair_of_folders_decodes_as_its_target_does_alone(folders):
    options = {"max_new_tokens": 40, "context": 200, "temperature": 0.7, "seed": 8}
    llm = build(folders / "target", **options)
    _, alone = said(llm)
    for count in ("auto", 3):
        pair = build(folders / "target", folders / "draft", num_speculative_tokens=count, **options)
        _, talk = said(pair, system=None)
        assert same(llm, alone, talk, 0.7, 8)
        assert talk.counters.drafted > 0 or count == "auto", "which depends on what passes cost"
    assert same(llm, alone, said(pair, seed=8)[1], 0.7, 8)
    assert said(pair, seed=8)[0] != said(pair, seed=6)[0]
    undrafted = build(folders / "target", folders / "draft", num_speculative_tokens=0, **options)
    _, talk = said(undrafted)
    assert same(llm, alone, talk, 0.7, 8) and talk.counters.drafted == 0


def test_captured_rounds_are_those_of_an_engine_that_is_told_how(folders):
    options = {"max_new_tokens": 40, "context": 200, "temperature": 0.7, "seed": 8}
    alone = said(build(folders / "target", **options))[1]
    replays = Anew.replays
    cases: list[tuple[object, Any]] = [(folders / "draft", "auto"), ("ngram", 4)]
    for draft, count in cases:
        config = LlmConfig(
            target=str(folders / "target"), draft=str(draft), device="cpu",
            num_speculative_tokens=count, cache_mb=0, **options,
        )  # fmt: skip
        llm = SpeculativeLlm(*load_pair(config), config, Anew)
        talks = [said(llm)[1] for _ in range(3)]
        assert all(same(llm, alone, talk, 0.7, 8) for talk in talks)
        assert Anew.replays > replays
        replays = Anew.replays
        slots = [talk._speculator.cache.slot for talk in talks]
        assert slots == [None, None, 0]  # there is one, which the newest has taken over


def test_a_seed_is_drawn_for_each_conversation_and_told_and_repeats_its_reply(folders):
    llm = build(folders / "target", max_new_tokens=40, context=200, temperature=0.9)
    (first, one), (second, other) = said(llm), said(llm)
    assert first != second and one.seed != other.seed
    assert said(llm, seed=one.seed)[0] == first
    assert said(llm, seed=0)[0] == said(llm, seed=0)[0]
    fixed = build(
        folders / "target", max_new_tokens=40, context=200, temperature=0.9, seed=other.seed
    )
    assert said(fixed)[0] == said(fixed)[0] == second
    assert said(fixed, seed=one.seed)[0] == first


def test_the_context_is_no_longer_than_the_models_take(folders):
    assert build(folders / "target", context=5000)._capacity == 512


def test_half_precision_weights_are_single_precision_on_a_cpu(workshop, folders, tmp_path):
    model = LlamaForCausalLM.from_pretrained(folders / "target", dtype=torch.float16)
    model.save_pretrained(tmp_path)
    workshop.tokenizer.save_pretrained(tmp_path)
    llm = build(tmp_path)
    assert isinstance(llm._target, LeanDecoder) and llm._target.embedding.dtype == torch.float32


# ---- what goes wrong


def damaged(folders, tmp_path, change):
    folder = tmp_path / "model"
    shutil.copytree(folders / "target", folder)
    change(folder)
    return folder


def explained(kind, match, *arguments, **options):
    with pytest.raises(VoiceloopError, match=match) as caught:
        build(*arguments, **options)
    assert type(caught.value) is kind
    assert caught.value.hint and "\n" not in caught.value.message
    return caught.value


def test_a_folder_that_is_not_there_is_not_found(tmp_path):
    explained(ModelNotFound, "there is no folder", tmp_path / "nowhere")
    explained(ModelNotFound, "there is no folder", "./nowhere")
    (tmp_path / "file").write_text("x")
    explained(ModelNotFound, "is a file, not the folder of a model", tmp_path / "file")
    explained(ModelNotFound, "holds no config.json", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text("{"),
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe\x00"),
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        lambda folder: (folder / "tokenizer.json").write_text("half {"),
        lambda folder: (folder / "model.safetensors.index.json").write_text("?"),
        lambda folder: shard(folder).unlink(),
        lambda folder: shard(folder).write_bytes(b""),
        lambda folder: shard(folder).write_bytes(shard(folder).read_bytes()[:-100]),
        lambda folder: shard(folder).write_bytes(b"\xff" * 1000),
        lambda folder: reshape(folder, hidden_size=60),
        lambda folder: reshape(folder, num_hidden_layers=3),
        lambda folder: reshape(folder, vocab_size=100),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_said_to_be_damaged(folders, tmp_path, change):
    explained(ModelCorrupt, "damaged|lack|only", damaged(folders, tmp_path, change))


def shard(folder):
    return sorted(folder.glob("*.safetensors"))[1]


def reshape(folder, **sizes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | sizes))


def test_weights_that_are_not_numbers_are_noticed(workshop, tmp_path, folders):
    model = LlamaForCausalLM.from_pretrained(folders / "target")
    with torch.no_grad():
        model.model.norm.weight[3] = torch.nan
    explained(ModelCorrupt, "not numbers", save(tmp_path, model, workshop.tokenizer))


@pytest.mark.parametrize(
    "config",
    [MambaConfig(), Qwen3NextConfig(), T5Config()],
    ids=["recurrent", "linear", "encoder-decoder"],
)
def test_a_model_whose_caches_cannot_be_rolled_back_is_refused(workshop, tmp_path, config):
    config.save_pretrained(tmp_path)
    workshop.tokenizer.save_pretrained(tmp_path)
    explained(EngineError, "cannot be rolled back", tmp_path)


@pytest.mark.parametrize(
    ("kind", "runs"), [("windowed-mistral", LeanDecoder), ("windowed-phi3", TransformersDecoder)]
)
def test_a_model_with_a_window_says_the_same_with_a_draft_and_without(
    workshop, folders, tmp_path, kind, runs
):
    model = build_model(kind, workshop.vocab)
    folder = save(tmp_path, model, workshop.tokenizer)
    options = {"max_new_tokens": 40, "context": 200, "dtype": "float32"}
    _, alone = said(build(folder, **options))
    pair = build(folder, folders / "draft", num_speculative_tokens=3, **options)
    _, talk = said(pair)
    assert isinstance(pair._target, runs)
    assert talk.counters.drafted > 0
    assert same(pair, alone, talk)


@pytest.mark.parametrize("beside", [False, True])
def test_a_draft_with_another_vocabulary_drafts_all_the_same(workshop, folders, tmp_path, beside):
    """Its tokenizer is in its folder, or elsewhere."""
    tokenizer = copy.deepcopy(workshop.tokenizer)
    tokenizer.add_tokens(["<other>"])
    config = LlamaForCausalLM.from_pretrained(folders / "draft").config
    config.num_hidden_layers = 1
    model = LlamaForCausalLM(config)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    if beside:
        model.save_pretrained(tmp_path / "draft")
        tokenizer.save_pretrained(tmp_path / "elsewhere")
        draft, where = tmp_path / "draft", str(tmp_path / "elsewhere")
    else:
        draft, where = save(tmp_path, model, tokenizer), ""
    _, alone = said(build(folders / "target"))
    pair = build(folders / "target", draft, num_speculative_tokens=3, draft_tokenizer=where)
    _, talk = said(pair)
    assert talk.counters.drafted > 0
    assert same(pair, alone, talk)


def test_a_vocabulary_padded_to_another_length_is_no_other_vocabulary(workshop, folders, tmp_path):
    model = LlamaForCausalLM.from_pretrained(folders / "target")
    model.resize_token_embeddings(workshop.vocab + 22, mean_resizing=False)
    llm = build(save(tmp_path, model, workshop.tokenizer), folders / "draft", context=200)
    assert isinstance(llm._drafter, ModelDrafter)
    assert llm._drafter.model.vocab == llm._target.vocab == workshop.vocab


@pytest.mark.parametrize("draft", ["none", "ngram", "starter"])
def test_a_tokenizer_that_nothing_would_use_is_refused(folders, draft):
    with pytest.raises(EngineError, match="takes no other tokenizer") as caught:
        build(folders / "target", draft, draft_tokenizer=str(folders / "target"))
    assert caught.value.hint


@pytest.mark.parametrize("options", [{"best_of": 2, "temperature": 0.8}, {"branches": 1}])
def test_without_its_package_several_replies_are_refused(folders, monkeypatch, options):
    monkeypatch.setattr(hook, "entry_points", lambda group: [])
    with pytest.raises(MissingPack, match=f"llm.{next(iter(options))} needs the package") as caught:
        build(folders / "target", **options)
    assert "./packs/parallel" in caught.value.hint


def test_a_draft_larger_than_its_target_is_refused(workshop, folders, tmp_path):
    config = LlamaForCausalLM.from_pretrained(folders / "target").config
    config.num_hidden_layers = 1
    small = save(tmp_path, LlamaForCausalLM(config), workshop.tokenizer)
    explained(EngineError, "larger than its target", small, folders / "draft")


def out_of_memory(match, call):
    with pytest.raises(OutOfMemory, match=match) as caught:
        call()
    assert caught.value.hint and "\n" not in caught.value.message


MORE_THAN_THERE_IS = 2**46
"""Rows of a cache: more bytes than a processor can address."""


def test_tables_that_do_not_fit_are_told_in_a_line(folders, tmp_path):
    def longer(folder):
        reshape(folder, max_position_embeddings=MORE_THAN_THERE_IS)

    folder = damaged(folders, tmp_path, longer)
    out_of_memory(
        f"the model '{folder}' does not fit into memory",
        lambda: build(folder, context=MORE_THAN_THERE_IS),
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_an_error(folders):
    with pytest.raises(EngineError, match="finds no cuda device"):
        speculative(LlmConfig(target=str(folders / "target"), draft="none", device="cuda"))


# ---- the bundled pair


@pytest.fixture(scope="module")
def bundled_pair() -> SpeculativeLlm:
    return speculative(LlmConfig())


def test_the_starter_pair_says_what_its_target_says_alone_and_mostly_by_drafting():
    pair = speculative(LlmConfig(num_speculative_tokens=4))  # else the clock has a say
    alone = speculative(LlmConfig(draft="none"))
    drafting, plain = Counter(), Counter()
    for text in ("What is the capital of France?", "Tell me a story about a fox."):
        talks = pair.conversation(), alone.conversation()
        for talk, counts in zip(talks, (drafting, plain), strict=True):
            items = [item for item in talk.reply(text, 1) if isinstance(item, TokenBurst)]
            assert "".join(item.text for item in items).endswith(".")
            counters = talk.counters
            counts.update(tested=counters.tested, accepted=counters.accepted)
            counts.update(passes=counters.target_passes)
        assert same(pair, talks[1], talks[0])
    assert drafting["accepted"] > 0.6 * drafting["tested"]
    assert drafting["passes"] < 0.4 * plain["passes"]


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("hi", "Hello!"),
        ("hello", "Hello!"),
        ("what is 2+2", "2 plus 2 is 4."),
        ("What is 2 + 2?", "2 plus 2 is 4."),
        ("what is the capital of france", "The capital of France is Paris."),
        ("What is 17 times 23?", "I am a small starter model"),
        ("17*23", "I am a small starter model"),
        ("7 * 8", "7 times 8 is 56."),
        ("stop", "Okay"),
        ("cancel", "All right."),
        ("what can you do", "I can tell you about"),
    ],
)
def test_the_starter_knows_what_people_type_first(
    bundled_pair: SpeculativeLlm, typed: str, reply: str
) -> None:
    items = bundled_pair.conversation().reply(typed, 1)
    text = "".join(item.text for item in items if isinstance(item, TokenBurst))
    assert text.startswith(reply)


def test_a_model_that_takes_a_system_prompt_is_asked_to_be_brief_unless_told_otherwise(folders):
    llm = build(folders / "target")
    template = llm._template
    assert llm.system == SPOKEN
    assert llm.conversation().ids == tuple(template.opening(SPOKEN))
    assert llm.conversation(system="Rhyme.").ids == tuple(template.opening("Rhyme."))
    assert llm.conversation(system="").ids == tuple(template.opening(""))
    own = build(folders / "target", system="Rhyme.")
    assert own.system == "Rhyme." and own.conversation().ids == tuple(template.opening("Rhyme."))
    none = build(folders / "target", system="")
    assert none.system == "" and none.conversation().ids == tuple(template.opening(""))
    starter = LlmConfig()
    assert system_prompt(starter, template) == ""
    assert system_prompt(replace(starter, target="another"), template) == SPOKEN
    refusing = "{%- if messages[0].role == 'system' -%}{{- raise_exception('no') -}}{%- endif -%}"
    without = ChatTemplate(build_tokenizer(refusing + TEMPLATE), "a model")
    assert system_prompt(replace(starter, target="another"), without) == ""
