"""Distributions that are known exactly, and a test of whether counts follow one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from voiceloop.llm.model.attention import SlotPosition
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CHUNK
from voiceloop.llm.rules.sampling import Penalties, Sampling, warp
from voiceloop.llm.rules.verify import Tree

CPU = torch.device("cpu")


def p_value(counts: Tensor, p: Tensor) -> float:
    """Of Pearson's chi-square test; any mass outside the support of `p` is a p-value of 0."""
    if counts[p == 0].any():
        return 0.0
    counts, p = counts[p > 0].double(), p[p > 0].double()
    expected = p * counts.sum()
    small = expected < 5  # bins too small for the approximation are merged
    if small.any():
        counts = torch.cat((counts[~small], counts[small].sum().view(1)))
        expected = torch.cat((expected[~small], expected[small].sum().view(1)))
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    return torch.special.gammaincc(freedom, statistic / 2).item()


class Table:
    """A model whose logits are read from a table, by the first token and the last two.

    Its keys are the tokens themselves, so a cache with the wrong rows gives the wrong distribution.
    """

    def __init__(self, vocab: int, seed: int, spread: float = 1.5) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = (vocab,) * 4
        self.vocab, self.parameters, self.device = vocab, 1, CPU
        self.dtype, self.attends_bucket, self.pass_bytes = torch.float64, True, 0
        self.chunk = CHUNK
        self.logits = torch.randn(shape, generator=generator, dtype=torch.float64) * spread

    def like(self, seed: int, weight: float) -> Table:
        """A draft for it: the more `weight` it has, the more alike."""
        draft = Table(self.vocab, seed)
        draft.logits = weight * self.logits + (1 - weight) * draft.logits
        return draft

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        rows = ids.view(-1, 1, 1)
        seen = cache.extend(0, rows)[0].flatten()
        cache.advance(len(ids))
        last = seen[-keep:]
        before = seen[-keep - 1 : -1] if len(seen) > keep else torch.cat((seen[:1], seen[:-1]))
        return self.logits[seen[0], before[-keep:], last]

    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        """See `Decoder.forward_tree`."""
        seen = cache.extend(0, ids.view(-1, 1, 1))[0].flatten()
        cache.advance(len(ids))
        root = len(seen) - len(tree)
        before = [max(0, at - 1) for at in range(root)]
        before += [root + parent for parent in tree.parents]
        return self.logits[seen[0], seen[before][-keep:], seen[-keep:]]

    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        """See `Decoder.forward_at`."""
        positions = place.positions(len(ids))
        (buffer,) = place.write(0, place.rows(positions), ids.view(-1, 1, 1))
        seen, last = place.seen(buffer).flatten(), positions[-keep:]
        return self.logits[seen[0], seen[(last - 1).clamp(min=0)], seen[last]]

    def joint(self, sampling: Sampling, prompt: Sequence[int], tokens: int) -> Tensor:
        """Probability of every reply of so many tokens, drawn from this model alone: flat."""
        joint = torch.zeros((self.vocab,) * tokens, dtype=torch.float64)
        for reply in itertools.product(range(self.vocab), repeat=tokens):
            chance = 1.0
            for index, token in enumerate(reply):
                if chance == 0:
                    break
                chance *= self._row(sampling, prompt, reply[:index])[token].item()
            joint[reply] = chance
        return joint.flatten()

    def _row(self, sampling: Sampling, prompt: Sequence[int], reply: Sequence[int]) -> Tensor:
        ids = (*prompt, *reply)
        penalties = Penalties(sampling, self.vocab, CPU)
        penalties.count(ids, len(prompt))
        logits = self.logits[ids[0], ids[-2], ids[-1]].unsqueeze(0)
        none = torch.empty(0, dtype=torch.long)
        return warp(penalties.apply(logits, none), sampling).softmax(-1)[0]
