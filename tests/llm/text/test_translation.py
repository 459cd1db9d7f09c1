"""A sequence of one tokenizer's tokens in those of another, and drafts that guess that way."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.llm.conftest import CONTEXT, CORPUS, build_model, build_tokenizer
from tests.llm.replies import CAPACITY, MODE_NAMES, MODES, prompts, run, say, speculator
from voiceloop.llm.decode.speculate import Speculator
from voiceloop.llm.draft.translated import TranslatedDraft
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import decoder
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Penalties, Sampling
from voiceloop.llm.rules.verify import chain
from voiceloop.llm.text.translation import Translation, shared

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
KINDS = ("bytes", "pieces", "unigram", "characters")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer(kind: str) -> Any:
    """Another way to cut the same text."""
    alphabet = sorted(
        {c for text in CORPUS for c in text} | set("abcdefghijklmnopqrstuvwxyz ▁é🌍\n")
    )
    match kind:
        case "bytes":
            return build_tokenizer(vocab=300)
        case "pieces":
            raw = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
            bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
            trainer: Any = trainers.BpeTrainer(
                vocab_size=420, special_tokens=["<unk>", *SPECIAL, *bytes_]
            )
        case "unigram":
            raw = Tokenizer(models.Unigram())
            trainer = trainers.UnigramTrainer(
                vocab_size=200, special_tokens=["<unk>", *SPECIAL], unk_token="<unk>",
                initial_alphabet=alphabet,
            )  # fmt: skip
        case _:
            raw = Tokenizer(models.WordLevel(unk_token="<unk>"))
            raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
            raw.decoder = decoders.Fuse()
            trainer = trainers.WordLevelTrainer(special_tokens=["<unk>", *SPECIAL])
            raw.train_from_iterator([*CORPUS, " ".join(alphabet)], trainer)
            return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>")
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    raw.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>")


TOKENIZERS = {kind: tokenizer(kind) for kind in KINDS}
SOURCE = build_tokenizer()
LETTERS = "the capital of France is Paris. a  b\n what?"


def text_of(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(
    text=st.text(alphabet=LETTERS, max_size=40),
    cuts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4),
)
def test_what_is_translated_says_the_same_however_it_grew(kind, text, cuts):
    other = TOKENIZERS[kind]
    ids = SOURCE.encode(text, add_special_tokens=False)
    translation = Translation(SOURCE, other)
    for back, on in cuts:
        translation.translate(ids[:on])
        translation.rollback(back)
    own = translation.translate(ids)
    assert own == Translation(SOURCE, other).translate(ids)
    assert text_of(other, own).removeprefix(" ") == text.removeprefix(" ")


def test_special_tokens_are_those_of_the_same_name_and_characters_are_never_cut():
    text = "<|im_start|>user\nHello 🌍!<|im_end|>\n"
    ids = SOURCE.encode(text, add_special_tokens=False)
    for kind in ("bytes", "pieces"):
        other = TOKENIZERS[kind]
        translation, lengths = Translation(SOURCE, other), []
        for end in range(1, len(ids) + 1):
            own = translation.translate(ids[:end])
            lengths.append(len(own))
            assert "\ufffd" not in text_of(other, own)
        names = [other.convert_ids_to_tokens(index) for index in own]
        assert names[0] == "<|im_start|>" and "<|im_end|>" in names
        assert lengths != list(range(1, len(ids) + 1))


def test_tokens_are_shared_where_they_mean_the_same_bytes():
    pieces, own = TOKENIZERS["pieces"].get_vocab(), SOURCE.get_vocab()
    same = shared(own, pieces)
    names = {index: text for text, index in own.items()}
    found = {text: names[same[index]] for text, index in pieces.items() if index in same}
    assert found["▁the"] == "Ġthe" and found["<|im_end|>"] == "<|im_end|>"
    assert found["a"] == "a" and "<unk>" not in found
    assert names[same[pieces["<0x0A>"]]] == "Ċ"


# ---- drafts


def made(workshop: Any, kind: str, target: Any, sampling: Sampling, length: int | None):
    other = TOKENIZERS[kind]
    model = decoder(build_model("llama", len(other), 5), len(other), CONTEXT)
    translation = Translation(workshop.tokenizer, other)
    vocab, cache = target.vocab, KvCache(CAPACITY)
    same = shared(workshop.tokenizer.get_vocab(), other.get_vocab())
    draft = TranslatedDraft(model, translation, same, vocab, sampling, CAPACITY)
    return Speculator(target, draft, DraftPolicy(length, 0.1), sampling, cache), draft


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
def test_with_another_tokenizer_replies_are_the_targets_own(workshop, sampling, kind):
    target, drafted = workshop.decoder(), 0
    for prompt in prompts(workshop.vocab, 2):
        for length in (4, None):
            speaks, _ = made(workshop, kind, target, sampling, length)
            reply = say(speaks, prompt, 24).ids
            plain = speculator(workshop.decoder(), None, sampling, None)
            assert reply == say(plain, prompt, 24).ids
            drafted += speaks.stats.total.drafted
    assert drafted > 0


@pytest.mark.parametrize(
    ("count", "tokens"),
    [
        pytest.param(4, 16, id="quick"),
        pytest.param(500, 64, id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 0.8], ids=["greedy", "sampled"])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "mistral"])
def test_whatever_its_architecture_replies_are_the_targets_own(
    workshop, architecture, temperature, count, tokens
):
    sampling, target, drafted = Sampling(temperature, seed=7), workshop.decoder(architecture), 0
    for kind, prompt in zip(itertools.cycle(KINDS), prompts(workshop.vocab, count), strict=False):
        plain = say(speculator(target, None, sampling, None), prompt, tokens).ids
        speaks, _ = made(workshop, kind, target, sampling, 4)
        assert say(speaks, prompt, tokens).ids == plain, kind
        drafted += speaks.stats.total.drafted
    assert drafted > 0


def test_shared_tokens_are_proposed_from_the_drafts_own_distribution_over_them(workshop):
    sampling, target = Sampling(1.0), workshop.decoder()
    (prompt,) = prompts(workshop.vocab, 1)
    _, draft = made(workshop, "pieces", target, sampling, 4)
    noise = torch.zeros(4, workshop.vocab, dtype=torch.float64)
    x = run(draft.propose(prompt, chain(4), noise, Penalties(sampling, workshop.vocab, CPU)))
    same = shared(workshop.tokenizer.get_vocab(), TOKENIZERS["pieces"].get_vocab())
    assert set(x.tokens.tolist()) <= set(same.values())


def test_whatever_is_cut_back_the_draft_goes_on_as_if_it_had_never_been(workshop):
    chance, target = random.Random(4), workshop.decoder()
    sampling = Sampling()
    _, live = made(workshop, "pieces", target, sampling, 4)
    words = [workshop.tokenizer.encode(text) for text in CORPUS]
    ids: list[int] = []
    for _ in range(60):
        match chance.randrange(4):
            case 0:
                ids = ids[: chance.randrange(len(ids) + 1)]
                live.rollback(len(ids))
            case 1:
                steps = live.prefill(ids)
                for _ in range(chance.randrange(3)):
                    next(steps, None)
                steps.close()
            case _:
                ids = [*ids, *chance.choice(words)[: chance.randrange(1, 9)]][:200]
        if not ids:
            continue
        _, fresh = made(workshop, "pieces", target, sampling, 4)
        penalties = Penalties(sampling, workshop.vocab, CPU)
        expected = run(fresh.propose(ids, chain(3), None, penalties)).tokens
        assert torch.equal(run(live.propose(ids, chain(3), None, penalties)).tokens, expected)


def test_what_is_too_long_in_the_drafts_tokens_is_not_drafted(workshop):
    target, sampling = workshop.decoder(), Sampling()
    speaks, draft = made(workshop, "characters", target, sampling, 4)
    prompt = workshop.tokenizer.encode("the capital of France is Paris. " * 20)[:300]
    assert len(draft._translation.translate(prompt)) > CAPACITY
    plain = speculator(workshop.decoder(), None, sampling, None)
    assert say(speaks, prompt, 8).ids == say(plain, prompt, 8).ids
