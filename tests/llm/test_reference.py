"""The fast loop says what the loop on one screen says, and that one what the target says alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tests.llm.replies import GREEDY, SAMPLED, prompts, say, speculator
from tests.llm.ties import ties
from voiceloop.llm.decode.reference import Model, speculate
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder

pytestmark = pytest.mark.models


def rows(model: Decoder) -> Model:
    def computed(ids: Sequence[int]) -> Tensor:
        given = torch.tensor([*ids], dtype=torch.long)
        return model.forward(given, KvCache(len(given)), len(given))

    return computed


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_the_fast_loop_says_what_the_loop_on_one_screen_says(workshop, sampling, k):
    target, draft = workshop.decoder(), workshop.draft("unsteady")
    for prompt in prompts(workshop.vocab, 3):
        expected = speculate(rows(target), rows(draft), prompt, 24, k, sampling)
        reply = say(speculator(target, draft, sampling, k), prompt, 24).ids
        assert ties(target, sampling, prompt, expected, reply) <= 1
