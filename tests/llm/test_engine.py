"""Models from folders: a pair that suits is loaded, anything else is explained."""

from __future__ import annotations

import copy
import json
import shutil

import pytest
import torch
from transformers import LlamaForCausalLM, MambaConfig, MistralConfig, T5Config

from voiceloop.config import LlmConfig
from voiceloop.errors import EngineError, ModelCorrupt, ModelNotFound, VoiceloopError
from voiceloop.llm.decoder import LeanDecoder
from voiceloop.llm.engine import speculative
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


def test_a_pair_of_folders_decodes_as_its_target_does_alone(folders):
    options = {"max_new_tokens": 40, "context": 200, "temperature": 0.7, "seed": 5}
    alone, _ = said(build(folders / "target", **options))
    for count in ("auto", 3):
        pair = build(folders / "target", folders / "draft", num_speculative_tokens=count, **options)
        ids, conversation = said(pair, system="")
        assert ids == alone and conversation.counters.drafted > 0
    assert said(pair, seed=5)[0] == alone != said(pair, seed=6)[0]
    no_guesses = build(folders / "target", folders / "draft", num_speculative_tokens=0, **options)
    ids, conversation = said(no_guesses)
    assert ids == alone and conversation.counters.drafted == 0


def test_the_configured_system_prompt_stands_in_for_none(folders):
    llm = build(folders / "target", system="Be brief.", context=64)
    text = llm._tokenizer.decode
    assert "Be brief." in text(llm.conversation().ids)
    assert "Sing." in text(llm.conversation(system="Sing.").ids)


def test_the_context_is_no_longer_than_the_models_take(folders):
    assert build(folders / "target", context=5000)._capacity == 512


def test_half_precision_weights_are_single_precision_on_a_cpu(workshop, folders, tmp_path):
    model = LlamaForCausalLM.from_pretrained(folders / "target", dtype=torch.float16)
    model.save_pretrained(tmp_path)
    workshop.tokenizer.save_pretrained(tmp_path)
    llm = build(tmp_path)
    assert isinstance(llm._target, LeanDecoder) and llm._target._embedding.dtype == torch.float32


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
    explained(ModelNotFound, "does not exist", tmp_path / "nowhere")
    explained(ModelNotFound, "does not exist", "./nowhere")
    (tmp_path / "file").write_text("x")
    explained(ModelNotFound, "is not a folder", tmp_path / "file")
    explained(ModelNotFound, "holds no config.json", tmp_path)


def test_a_hub_name_that_cannot_be_fetched_is_not_found():
    explained(ModelNotFound, "could not be fetched", "nobody/no-such-model")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text("{"),
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").write_text('{"model_type": "no such"}'),
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
    [
        MistralConfig(sliding_window=64),
        MambaConfig(),
        T5Config(),
    ],
    ids=["sliding", "recurrent", "encoder-decoder"],
)
def test_a_model_whose_caches_cannot_be_rolled_back_is_refused(workshop, tmp_path, config):
    config.save_pretrained(tmp_path)
    workshop.tokenizer.save_pretrained(tmp_path)
    explained(EngineError, "cannot be rolled back", tmp_path)


def test_a_draft_with_another_vocabulary_is_refused(workshop, folders, tmp_path):
    tokenizer = copy.deepcopy(workshop.tokenizer)
    tokenizer.add_tokens(["<other>"])
    model = LlamaForCausalLM.from_pretrained(folders / "draft")
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    explained(
        EngineError, "vocabularies differ", folders / "target", save(tmp_path, model, tokenizer)
    )


def test_a_vocabulary_padded_to_another_length_is_no_other_vocabulary(workshop, folders, tmp_path):
    model = LlamaForCausalLM.from_pretrained(folders / "target")
    model.resize_token_embeddings(workshop.vocab + 22, mean_resizing=False)
    llm = build(save(tmp_path, model, workshop.tokenizer), folders / "draft", context=200)
    assert llm._draft is not None
    assert llm._draft.vocab == llm._target.vocab == workshop.vocab


def test_a_draft_larger_than_its_target_is_refused(workshop, folders, tmp_path):
    config = LlamaForCausalLM.from_pretrained(folders / "target").config
    config.num_hidden_layers = 1
    small = save(tmp_path, LlamaForCausalLM(config), workshop.tokenizer)
    explained(EngineError, "larger than its target", small, folders / "draft")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_an_error(folders):
    with pytest.raises(EngineError, match="finds no cuda device"):
        speculative(LlmConfig(target=str(folders / "target"), draft="none", device="cuda"))


# ---- the bundled pair


def test_the_starter_pair_says_what_its_target_says_alone_and_mostly_by_guessing():
    pair = speculative(LlmConfig(num_speculative_tokens=4))  # else the clock has a say
    alone = speculative(LlmConfig(draft="none"))
    talks = pair.conversation(), alone.conversation()
    for turn, text in enumerate(["What is the capital of France?", "Tell me a story about a fox."]):
        replies = [
            "".join(item.text for item in talk.reply(text, turn) if isinstance(item, TokenBurst))
            for talk in talks
        ]
        assert replies[0] == replies[1] and replies[0].endswith(".")
    assert talks[0].ids == talks[1].ids
    assert talks[0].counters.accepted > 0.6 * talks[0].counters.tested
    assert talks[0].counters.target_passes < 0.4 * talks[1].counters.target_passes
