"""Trees of draft tokens: what a node's row sees is its own path, and no tree changes a reply."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tests.llm.conftest import CONTEXT, KINDS, WINDOWED, Trees, Workshop, Wrong, near
from tests.llm.replies import say
from voiceloop.llm.decode.speculate import Speculator
from voiceloop.llm.draft.drafts import Draft, ModelDraft, NgramDraft
from voiceloop.llm.draft.featuredraft import FeatureDraft
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.rules.draftpolicy import WIDEST, DraftPolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.verify import ROOT, Tree, chain

pytestmark = pytest.mark.models
CPU = torch.device("cpu")
BUSHY = Tree((ROOT, ROOT, ROOT, 0, 0, 1, 3, 3, 5, 7))
LATER = DraftPolicy.FIRST_CLAUSE


@pytest.mark.parametrize("kind", [*KINDS, *WINDOWED])
def test_a_node_is_computed_as_if_its_path_were_all_there_is(workshop: Workshop, kind: str) -> None:
    decoder, chance = workshop.decoder(kind), random.Random(5)
    prompt = [chance.randrange(workshop.vocab) for _ in range(21)]
    drafted = [chance.randrange(workshop.vocab) for _ in BUSHY.parents]
    cache = KvCache(CONTEXT)
    decoder.forward(torch.tensor(prompt[:18]), cache, 1)
    # What the tree stands on goes in the same pass, and the last level in one of its own.
    last = BUSHY.levels[-1]
    before = len(BUSHY) - len(last)
    first = decoder.forward_tree(
        torch.tensor(prompt[18:] + drafted[:before]), cache, BUSHY.only(range(before)), before + 1
    )
    second = decoder.forward_tree(torch.tensor(drafted[before:]), cache, BUSHY, len(last))
    logits = torch.cat((first, second))
    for node in (ROOT, *range(len(BUSHY))):
        path = [] if node == ROOT else [drafted[at] for at in BUSHY.paths[node]]
        plain = decoder.forward(torch.tensor(prompt + path), KvCache(CONTEXT), 1)
        assert near(logits[node + 1], plain[0], 1e-6)
    # One path is kept, and what follows it sees no other.
    path = BUSHY.paths[7]
    with torch.inference_mode():
        cache.keep(len(prompt), path)
    whole = prompt + [drafted[at] for at in path]
    assert cache.length == len(whole)
    found = decoder.forward(torch.tensor([7, 8]), cache, 2)
    plain = decoder.forward(torch.tensor([*whole, 7, 8]), KvCache(CONTEXT), 2)
    assert near(found, plain, 1e-6)


def drafting(workshop: Workshop, name: str, kind: str, cache: KvCache, sampling: Sampling) -> Draft:
    if name == "layer":
        return FeatureDraft(workshop.layer(kind), cache, sampling, CONTEXT)
    if name == "ngram":
        return NgramDraft(CPU)
    model = Second(workshop.decoder(kind)) if name == "second" else workshop.draft(name, kind)
    assert model is not None
    return ModelDraft(model, sampling, CONTEXT)


class Second(Wrong):
    """A draft that likes best what comes after the target's choice, and then the target's."""

    def off(self, logits: Tensor, places: Tensor) -> Tensor:
        best = logits.argmax(-1, keepdim=True)
        return logits.scatter(-1, (best + 1) % self.vocab, logits.amax(-1, keepdim=True) + 9.0)


MODES = {
    "greedy": Sampling(),
    "warm": Sampling(temperature=0.8, top_p=0.9, seed=3),
    "penalised": Sampling(repetition_penalty=1.3, frequency_penalty=0.2),
    "both": Sampling(temperature=1.2, top_k=40, presence_penalty=0.5, seed=4),
}


@pytest.mark.parametrize(
    ("count", "tokens"),
    [
        pytest.param(2, 32, id="quick"),
        pytest.param(500, 64, id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["random", "unsteady", "second", "layer", "ngram"])
@pytest.mark.parametrize("kind", ["llama", "qwen3", "windowed-gemma3", "gpt2"])
def test_no_tree_changes_a_reply(
    workshop: Workshop, kind: str, name: str, mode: str, count: int, tokens: int
) -> None:
    sampling, chance = MODES[mode], random.Random(8)
    layer = name == "layer"
    target = workshop.decoder(kind, features=layer)
    some = [BUSHY, Tree((ROOT, ROOT, 1)), chain(3), Tree((ROOT,) * 4), Tree((ROOT, 0, 0, 2, 2))]
    accepted, branched = 0, 0
    for _ in range(count):
        prompt = [chance.randrange(workshop.vocab) for _ in range(chance.randrange(2, 30))]
        prompt += prompt[: len(prompt) // 2]  # so that something was said before
        plain = Speculator(target, None, DraftPolicy(0, 0.1), sampling, KvCache(CONTEXT))
        cache, policy = KvCache(CONTEXT), Trees(some)
        draft = drafting(workshop, name, kind, cache, sampling)
        branching = Speculator(target, draft, policy, sampling, cache)  # type: ignore[arg-type]
        assert say(branching, prompt, tokens).ids == say(plain, prompt, tokens).ids
        accepted += sum(map(len, policy.paths))
        branched += sum(path != tuple(range(len(path))) for path in policy.paths)
    if name == "unsteady":  # it is right often enough for the paths to be tried
        assert accepted > 15
    if name == "second" and sampling.temperature == 0:
        assert branched > 5


# What is drafted.


def chances(rates: Sequence[float]) -> DraftPolicy:
    """A policy that has seen the draft's choices accepted that often."""
    policy, chance = DraftPolicy(None, 0.1, {1: 1.0, 17: 1.32}, branches=True), random.Random(1)
    wide = Tree((ROOT,) * WIDEST)
    for _ in range(600):
        at, drawn = None, chance.random()
        for rank, rate in enumerate(rates):
            if drawn < rate:
                at = rank
                break
            drawn -= rate
        policy.observe(wide, [] if at is None else [at], 1.0, 10.0)
    return policy


def test_where_rows_cost_next_to_nothing_it_branches_and_where_they_cost_much_it_does_not() -> None:
    policy = chances((0.4, 0.2, 0.1, 0.05))
    for _ in range(40):
        for rows, ms in ((1, 10.0), (5, 10.2), (9, 10.4), (17, 10.8)):
            policy.observe(chain(rows - 1), range((rows - 1) // 3), 1.0, ms)
    flat = policy.next(LATER)
    assert not flat.is_chain and len(flat) > flat.depth
    for _ in range(40):
        for rows in (1, 2, 3, 5, 9, 17):
            policy.observe(chain(rows - 1), range((rows - 1) // 3), 1.0, 6.0 + 4.0 * rows)
    steep = policy.next(LATER)
    assert steep.is_chain and len(steep) < 4
