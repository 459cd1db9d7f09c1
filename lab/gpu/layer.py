"""Times rounds in which a trained layer drafts, beside captured rounds in which a model drafts.

A layer reads the target's features, so its rounds are not captured. Its weights are random: the
times are right, and its tokens are useless.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from transformers import PreTrainedModel

from lab.decoding.pair import Pair, load_models
from lab.decoding.steps import time_steps
from lab.decoding.synthetic import PAIRS, Shape, synthetic_prompts, vocabulary
from lab.gpu.cast import ACCEPTANCE
from lab.gpu.rows import Row
from voiceloop.llm.draft.trained import DraftCard, DraftShape, LoadedHead
from voiceloop.llm.model.loading import LoadedModel, family
from voiceloop.settings.config import LlmConfig

DRAFTED = 4
"""Draft tokens of a round."""
CHOICES = 32_000
"""Maximum number of tokens that the layer chooses from."""


def layered(name: str, config: LlmConfig) -> Iterator[Row]:
    """Yield the rows about rounds of the synthetic pair `name`, and about those of its target with
    a layer."""
    target, draft = load_models(config, name, ACCEPTANCE)
    layer = drawn_layer(target, vocabulary(name), PAIRS[name][1])
    yield from _rounds(f"{name}: a round with the draft model", name, Pair(target, draft, config))
    target, _ = load_models(config, name, ACCEPTANCE)  # the first pair has taken the weights
    yield from _rounds(f"{name}: a round with a layer", name, Pair(target, layer, config))


def drawn_layer(target: LoadedModel, vocab: int, shape: Shape) -> LoadedHead:
    """Return a layer with random weights for `target`, whose layers have the sizes of `shape`."""
    assert isinstance(target.model, PreTrainedModel)
    sizes = DraftShape(
        shape.hidden, shape.heads, shape.key_value_heads, shape.head_dim, shape.feed_forward
    )
    device, dtype = target.model.device, target.model.dtype
    weights = {
        weight: torch.randn(size, device=device, dtype=dtype).mul_(0.02)
        for weight, size in sizes.weights().items()
    }
    card = DraftCard(target.name, family(target), sizes)
    return LoadedHead("a drawn layer", card, weights, torch.arange(min(vocab, CHOICES)))


def _rounds(label: str, name: str, pair: Pair) -> Iterator[Row]:
    (text,) = synthetic_prompts(vocabulary(name), 1)
    ids = pair.prompt(text)
    costs = time_steps(*pair.decoders, ids, ids, {DRAFTED}, pair.captured)
    whole, drafting = costs.target[DRAFTED + 1], DRAFTED * costs.draft
    yield Row(
        label,
        f"{1000 * (drafting + whole):.2f} ms, {'captured' if pair.captured else 'not captured'}:"
        f" {DRAFTED} draft tokens {1000 * drafting:.2f}, a pass over {DRAFTED + 1} rows"
        f" {1000 * whole:.2f}, over one {1000 * costs.target[1]:.2f}",
    )
