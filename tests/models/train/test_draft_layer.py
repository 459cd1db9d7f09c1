"""The layer in training: it computes what it computes when it drafts, and it learns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from models.train.draft.layer import STEPS, Batch, FeatureLayer, acceptance, losses
from tests.llm.conftest import CONTEXT, build_model
from voiceloop.llm.draft.featuredraft import FeatureModel
from voiceloop.llm.draft.trained import DraftCard, DraftShape, LoadedHead
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import decoder

pytestmark = pytest.mark.models

VOCAB = 60
SHAPE = DraftShape(hidden=48, heads=4, groups=2, dim=8, inner=40)
TOKENS = torch.arange(0, VOCAB, 2)


def learner(features: torch.Tensor, embedding: torch.Tensor) -> FeatureLayer:
    torch.manual_seed(1)
    size = float(embedding.square().mean().sqrt())
    return FeatureLayer(SHAPE, size, features.square().mean(0).sqrt())


def test_each_chained_step_is_what_the_draft_computes_when_it_follows_itself():
    model: Any = build_model("llama", VOCAB, 0, torch.float32)
    head = model.get_output_embeddings().weight.detach().clone()
    target = decoder(model, VOCAB, CONTEXT, features=True)
    ids = torch.randint(VOCAB, (2, 20), generator=torch.Generator().manual_seed(2))
    caches = [KvCache(64), KvCache(64)]
    for row, cache in zip(ids, caches, strict=True):
        target.forward(row, cache, 1)
    features = torch.stack([cache.written(FEATURES)[0][:20, 0] for cache in caches])
    assert isinstance(target.embedding, torch.Tensor)
    layer = learner(features.flatten(0, 1), target.embedding)
    places = torch.where(ids % 2 == 0, ids // 2, -1)
    batch = Batch(target.embedding[ids], features, torch.ones(2, 20, dtype=torch.bool), places)
    with torch.no_grad():
        found = layer(batch)
    # Where little counts, only that and what it stands on is worked out.
    late = torch.zeros(2, 20, dtype=torch.bool)
    late[:, 11:] = True
    some = Batch(batch.embedded, features, late, places)
    assert some.start == 11 - STEPS
    with torch.no_grad():
        for step, (own, all_of_it) in enumerate(zip(layer(some), found, strict=True)):
            assert torch.allclose(own[:, step:], all_of_it[:, some.start + step :], atol=1e-5)
    loaded = LoadedHead("layer", DraftCard("", "", SHAPE), layer.weights(), TOKENS)
    drafts = FeatureModel(loaded, head[TOKENS], target, CONTEXT)
    for row in range(2):
        for begun in (0, 1, 5, 12):  # the last token that the target's feature is known before
            cache = KvCache(64)
            before = torch.nn.functional.pad(features[row], (0, 0, 1, 0))[: begun + 1]
            _, last = drafts.forward(ids[row, : begun + 1], before, cache)
            for step in range(STEPS):
                assert torch.allclose(last[0], found[step][row, begun + step], atol=2e-4)
                if step < STEPS - 1:
                    after = ids[row, begun + step + 1 : begun + step + 2]
                    _, last = drafts.forward(after, last, cache)


def test_it_learns_what_follows():
    """Of features that tell the next token but one, every step becomes right."""
    generator = torch.Generator().manual_seed(0)
    rows, tokens = 8, 24
    embedding, head = torch.randn(2, VOCAB, 48, generator=generator)
    ids = torch.randint(VOCAB, (rows, 1), generator=generator) + 7 * torch.arange(tokens + 1)
    ids %= VOCAB
    features = head[ids[:, 1:]]  # the head is right about the next token
    counts = torch.ones(rows, tokens, dtype=torch.bool)
    counts[:, -1] = False
    places = torch.where(ids[:, :-1] % 2 == 0, ids[:, :-1] // 2, -1)
    batch = Batch(embedding[ids[:, :-1]], features, counts, places)
    layer = learner(features.flatten(0, 1), embedding)
    rows_of_head = head[TOKENS]

    def rates() -> list[float]:
        with torch.no_grad():
            reached = acceptance(batch, layer(batch), rows_of_head, 1.0)
        return (reached[1:] / reached[0]).tolist()

    before = rates()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        loss = losses(batch, layer(batch), rows_of_head)
        loss.backward()
        optimizer.step()
    after = rates()
    # Half of the tokens are none that it can choose.
    assert before[0] < 0.2 and 0.3 < after[0] <= 0.55
    assert all(a >= b for a, b in pairwise(after))


def test_what_the_target_did_not_choose_counts_for_nothing():
    generator = torch.Generator().manual_seed(0)
    embedded, features = torch.randn(2, 1, 16, 48, generator=generator)
    counts = torch.zeros(1, 16, dtype=torch.bool)
    counts[0, 8:10] = True
    layer, head = learner(features[0], embedded), torch.randn(5, 48, generator=generator)
    places = torch.full((1, 16), -1)
    batch = Batch(embedded, features, counts, places)
    loss = losses(batch, layer(batch), head)
    other = features.clone()
    other[0, 10:] += 1  # behind what counts
    assert torch.equal(losses(Batch(embedded, other, counts, places), layer(batch), head), loss)
    other[0, 9] += 1
    assert not torch.equal(losses(Batch(embedded, other, counts, places), layer(batch), head), loss)
    none = acceptance(batch, layer(batch), head, 1.0)
    assert none.tolist() == [2.0, 0, 0, 0, 0]


def test_the_penalty_lies_on_guesses_of_what_the_reply_has_said():
    counts = torch.zeros(1, 16, dtype=torch.bool)
    counts[0, 6:15] = True
    batch = Batch(torch.zeros(1, 16, 48), torch.zeros(1, 16, 48), counts, torch.full((1, 16), 2))
    head = torch.eye(5, 48)
    guesses = [(head[2] + head[3] / 2).expand(1, 16 - batch.start, 48)] * STEPS
    right = acceptance(batch, guesses, head, 1.0).tolist()
    assert right[:2] == [9.0, 9.0]
    # Before the reply it was said all the time, which is no matter; in the reply it is, once.
    assert acceptance(batch, guesses, head, 4.0).tolist() == [9.0, 1.0, 0.0, 0.0, 0.0]
