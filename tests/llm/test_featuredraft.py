"""A layer that was trained for a target: its rows, what it takes from the target, its files."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from models.train.draft.layer import rounded
from tests.llm.replies import GREEDY, prompts, run
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.draft.featuredraft import FeatureDraft
from voiceloop.llm.draft.trained import (
    CARD,
    FUSE,
    SCALE,
    TOKENS,
    WEIGHTS,
    DraftCard,
    DraftShape,
    check_head,
    is_head,
    load_head,
    shipped_head,
    unrounded,
)
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.loading import family, of_transformers
from voiceloop.llm.rules.sampling import Penalties
from voiceloop.llm.rules.verify import chain

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
SHAPE = DraftShape(hidden=8, heads=2, groups=1, dim=4, inner=8)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "windowed-gemma2"])
def test_a_cache_keeps_what_the_head_was_given_in_whatever_pieces(workshop, kind):
    (ids,) = prompts(workshop.vocab, 1)
    model = workshop.model(kind)
    whole = model.base_model(torch.tensor([ids])).last_hidden_state[0]
    decoder = workshop.decoder(kind, features=True)
    for pieces in ([len(ids)], [3, 1, len(ids) - 4]):
        cache = KvCache(64)
        for piece in torch.tensor(ids).split(pieces):
            decoder.forward(piece, cache, 1)
        kept = cache.written(FEATURES)[0][: len(ids), 0]
        assert torch.allclose(kept, whole, atol=1e-5)  # transformers normalises in float32


def test_the_first_guess_is_that_of_the_layer_over_all_the_targets_features(workshop):
    (ids,) = prompts(workshop.vocab, 1)
    target, model = workshop.decoder(features=True), workshop.layer()
    target.forward(torch.tensor(ids[:-1]), cache := KvCache(64), 1)
    features = cache.written(FEATURES)[0][: len(ids) - 1, 0]
    before = torch.cat((torch.zeros(1, model.hidden, dtype=features.dtype), features))
    logits, _ = model.forward(torch.tensor(ids), before, KvCache(64))
    for seen in (0, 1, len(ids) - 3):
        draft = FeatureDraft(model, cache, GREEDY, 64)
        run(draft.prefill(ids[:seen]))
        x = run(draft.propose(ids, chain(3), None, Penalties(GREEDY, workshop.vocab, CPU)))
        assert draft.length == len(ids) < draft.cache.length
        assert int(x.tokens[0]) == int(logits.argmax())
        draft.rollback(len(ids))
        assert draft.cache.length == len(ids)


# ---- files


def written(folder, **changed):
    shape, generator = SHAPE, torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(size, generator=generator) for name, size in shape.weights().items()
    }
    weights |= {TOKENS: torch.tensor([1, 4, 7], dtype=torch.int32)} | changed
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: weight for name, weight in weights.items() if weight is not None}, folder / WEIGHTS
    )
    card = DraftCard("some-model", "f" * 32, shape)
    (folder / CARD).write_bytes(msgspec.json.encode(card))
    return folder


def test_what_is_written_is_read(tmp_path):
    folder = written(tmp_path / "draft")
    assert is_head(folder) and not is_head(tmp_path)
    head = load_head("mine", folder, CPU)
    assert head.tokens.tolist() == [1, 4, 7]
    assert head.weights[FUSE].shape == (8, 16)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 100.0))
def test_weights_are_stored_to_within_half_a_step_of_their_row(seed, spread):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn((4, 8), generator=generator) * spread
    stored = rounded({FUSE: weight, "norm": torch.ones(8)})
    read = unrounded(stored)
    assert read.keys() == {FUSE, "norm"} and stored[FUSE].dtype == torch.int8
    assert ((read[FUSE] - weight).abs() <= 0.501 * stored[FUSE + SCALE]).all()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / CARD).write_text("{"),
        lambda folder: (folder / CARD).write_text('{"kind": 1}'),
        lambda folder: (folder / WEIGHTS).unlink(),
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:200]),
        lambda folder: written(folder, **{FUSE: torch.zeros(8, 8)}),
        lambda folder: written(folder, **{TOKENS: None}),
        lambda folder: written(folder, **{TOKENS: torch.zeros(0, dtype=torch.int32)}),
        lambda folder: written(folder, more=torch.zeros(1)),
        lambda folder: written(folder, **{FUSE: torch.zeros(8, 16, dtype=torch.int8)}),
        lambda folder: written(
            folder,
            **{FUSE: torch.zeros(8, 16, dtype=torch.int8), FUSE + SCALE: torch.ones(3, 1)},
        ),
    ],
)
def test_a_damaged_draft_is_said_to_be_one(tmp_path, damage):
    folder = written(tmp_path / "draft")
    damage(folder)
    with pytest.raises(ModelCorrupt, match="the draft 'mine' is damaged: ") as caught:
        load_head("mine", folder, CPU)
    assert "\n" not in caught.value.message and caught.value.hint


def test_one_that_ships_is_found_by_the_family_it_was_trained_for(tmp_path, monkeypatch):
    monkeypatch.setattr("voiceloop.llm.draft.trained.bundled", tmp_path.joinpath)
    assert shipped_head("f" * 32, CPU) is None
    written(tmp_path / "models" / "drafts" / "mine")
    found = shipped_head("f" * 32, CPU)
    assert found is not None and found.name == "mine"
    assert shipped_head("e" * 32, CPU) is None


def test_a_draft_of_another_target_is_refused(workshop, tmp_path):
    head = load_head("mine", written(tmp_path / "draft"), CPU)
    target = of_transformers("my model", workshop.model(), workshop.tokenizer)
    same = replace(head, card=msgspec.structs.replace(head.card, family=family(target)))
    check_head(same, target, 8)
    for other, vocab in ((head, 8), (same, 7)):
        with pytest.raises(EngineError, match="was trained for some-model") as caught:
            check_head(other, target, vocab)
        assert "models.train.draft" in caught.value.hint
