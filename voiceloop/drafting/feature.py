"""The layer that is trained: what the target's head will be given next, from what it was given.

This is EAGLE's shape (Li et al. 2024, arXiv 2401.15077): a row is the embedding of a token beside
the feature that the target had before it, and becomes the feature behind it. When it drafts, it
follows its own features from the second token on; so it does in training (Zhang et al. 2024, arXiv
2408.15766): every row is computed once with the target's feature and then, `STEPS` - 1 times, with
its own of the round before.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voiceloop.llm.draft.featuredraft import DraftShape
from voiceloop.llm.model.checkpoint import rotary_table

STEPS = 4
"""Tokens that are drafted in a row in training."""
FADE = 0.8
"""What each further one counts next to the one before."""
FEATURES = 0.1
"""What being off the target's feature counts next to choosing other tokens."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Dialogues beside each other, the shorter ones filled up at their ends."""

    embedded: Tensor
    """Of each token, [dialogues, tokens, hidden]."""
    features: Tensor
    """Of the target behind each token, the same shape."""
    counts: Tensor
    """Whether the target chose the token that follows each: bool [dialogues, tokens]."""
    places: Tensor
    """Of each token among those that are drafted; below 0 of those that are not: the same shape."""

    @property
    def start(self) -> int:
        """The row from which on features are worked out: before it nothing counts, and rows are
        keys and values alone."""
        places = self.counts.any(0).nonzero()
        return max(0, int(places[0]) - STEPS) if len(places) else 0

    @property
    def rows(self) -> Tensor:
        """Which of the rows from `start` on count: bool [dialogues, tokens - start]. The first of a
        dialogue do not, for want of features to stand on."""
        counts = self.counts[:, self.start :].clone()
        counts[:, :STEPS] = False
        return counts


class FeatureLayer(nn.Module):
    """One layer of the Llama family over embeddings and features; weights are begun at random.

    Its attributes are the parts of such a layer.
    """

    def __init__(self, shape: DraftShape, embedding_size: float, feature_sizes: Tensor) -> None:
        """`embedding_size` is the root of the mean square of embeddings; `feature_sizes` that of
        each entry of a feature, [hidden]."""
        super().__init__()
        self.shape = shape
        hidden, dim = shape.hidden, shape.dim

        def linear(inputs: int, outputs: int, scale: float = 1.0) -> nn.Linear:
            made = nn.Linear(inputs, outputs, bias=False)
            nn.init.normal_(made.weight, std=scale * inputs**-0.5)
            return made

        self.fuse = linear(2 * hidden, hidden, 0.5)
        with torch.no_grad():  # to begin with the next feature is the last
            self.fuse.weight[:, hidden:] += torch.eye(hidden)
        self.attention_norm = nn.RMSNorm(hidden, shape.eps)
        self.q = linear(hidden, shape.heads * dim)
        self.k = linear(hidden, shape.groups * dim)
        self.v = linear(hidden, shape.groups * dim)
        self.out = linear(shape.heads * dim, hidden, 0.3)
        self.mlp_norm = nn.RMSNorm(hidden, shape.eps)
        self.gate = linear(hidden, shape.inner)
        self.up = linear(hidden, shape.inner)
        self.down = linear(shape.inner, hidden, 0.3)
        self.norm = nn.RMSNorm(hidden, shape.eps)
        with torch.no_grad():
            self.norm.weight.copy_(feature_sizes)
        self.embedding_size: Tensor
        self.feature_size: Tensor
        self.register_buffer("embedding_size", torch.tensor(embedding_size))
        self.register_buffer("feature_size", feature_sizes.square().mean().sqrt())

    def forward(self, batch: Batch, steps: int = STEPS) -> list[Tensor]:
        """The features behind each token from `batch.start` on, as each of the chained steps has
        them: `steps` times [dialogues, tokens - start, hidden]. Number s stands on s features of
        the layer's own."""
        embedded, start = batch.embedded / self.embedding_size, batch.start
        # Row j is token j beside what the target had before it.
        before = F.pad(batch.features, (0, 0, 1, 0))[:, :-1]
        cos, sin = rotary_table(
            embedded.shape[1], self.shape.dim, self.shape.theta, embedded.dtype, embedded.device
        )
        found, seen = list[Tensor](), list[tuple[Tensor, Tensor]]()
        for step in range(steps):
            if step == 1:
                embedded, cos, sin = embedded[:, start:], cos[start:], sin[start:]
            x = self.fuse(torch.cat((embedded, before / self.feature_size), -1)).float()
            x = self._layer(x, seen, (cos, sin), 0 if step else start)
            found.append(self.norm(x))
            before = F.pad(found[-1], (0, 0, 1, 0))[:, :-1]
        return found

    def _layer(
        self,
        x: Tensor,
        seen: list[tuple[Tensor, Tensor]],
        tables: tuple[Tensor, Tensor],
        start: int,
    ) -> Tensor:
        """The layer over the rows from `start` on; all are seen."""
        shape = self.shape
        normed = self.attention_norm(x)

        def heads(projected: Tensor, count: int) -> Tensor:
            return projected.unflatten(-1, (count, shape.dim)).transpose(1, 2)

        k = turned(heads(self.k(normed), shape.groups), *tables)
        seen.append((k, heads(self.v(normed), shape.groups)))
        x, normed = x[:, start:], normed[:, start:]
        q = turned(heads(self.q(normed), shape.heads), *(table[start:] for table in tables))
        x = x + self.out(_attend(q, seen).transpose(1, 2).flatten(2))
        normed = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """What a decoder takes, by the names of `llm.featuredraft`."""
        fuse, hidden = self.fuse.weight.clone(), self.shape.hidden
        fuse[:, :hidden] /= self.embedding_size
        fuse[:, hidden:] /= self.feature_size
        prefix = "model.layers.0."
        return {
            "fuse.weight": fuse,
            f"{prefix}input_layernorm.weight": self.attention_norm.weight,
            f"{prefix}self_attn.q_proj.weight": self.q.weight,
            f"{prefix}self_attn.k_proj.weight": self.k.weight,
            f"{prefix}self_attn.v_proj.weight": self.v.weight,
            f"{prefix}self_attn.o_proj.weight": self.out.weight,
            f"{prefix}post_attention_layernorm.weight": self.mlp_norm.weight,
            f"{prefix}mlp.gate_proj.weight": self.gate.weight,
            f"{prefix}mlp.up_proj.weight": self.up.weight,
            f"{prefix}mlp.down_proj.weight": self.down.weight,
            "model.norm.weight": self.norm.weight,
        }


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021) put into `x` [..., tokens, dim]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _attend(q: Tensor, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Attention of the last of the chained steps: the shape of `q` [dialogues, heads, rows, dim],
    the last rows of the sequence; so are those of every step but the first, which has all.

    A row of step s stands for a token that follows s drafted ones: it sees the first step's rows of
    those before them, and of each of them the row of its own step.
    """
    (keys, values), later = seen[0], len(seen) - 1
    fold, rows, tokens = q.shape[1] // keys.shape[1], q.shape[2], keys.shape[2]

    def spread(x: Tensor, back: int) -> Tensor:
        """For each query's head, the row `back` tokens before."""
        x = x.repeat_interleave(fold, 1)
        return F.pad(x, (0, 0, back, 0))[:, :, :rows] if back else x

    places = torch.arange(tokens, device=q.device)
    unseen = places > places[tokens - rows :].unsqueeze(1) - later
    scores = q @ spread(keys, 0).transpose(2, 3)
    parts = [scores.masked_fill(unseen, float("-inf"))]
    for step, (key, _) in enumerate(seen[1:], 1):
        parts.append((q * spread(key, later - step)).sum(-1, keepdim=True))
    chances = (torch.cat(parts, -1).float() * q.shape[-1] ** -0.5).softmax(-1)
    attended = chances[..., :tokens] @ spread(values, 0)
    for step, (_, value) in enumerate(seen[1:], 1):
        at = tokens + step - 1
        attended = attended + chances[..., at : at + 1] * spread(value, later - step)
    return attended


def losses(batch: Batch, found: list[Tensor], head: Tensor) -> Tensor:
    """How far the steps are from the target: its distribution over the drafted tokens, whose rows
    of the head are `head` [tokens, hidden], and its features."""
    counts = batch.rows
    truth = batch.features[:, batch.start :][counts]
    wanted = (truth @ head.t()).float().softmax(-1)
    total = truth.new_zeros(())
    for step, features in enumerate(found):
        own = features[counts]
        apart = -(wanted * (own @ head.t()).float().log_softmax(-1)).sum(-1).mean()
        off = F.smooth_l1_loss(own, truth)
        total = total + FADE**step * (apart + FEATURES * off)
    return total


@torch.no_grad()
def acceptance(batch: Batch, found: list[Tensor], head: Tensor, penalty: float) -> Tensor:
    """How many rows there were to guess, and of how many of them the first, the first two, … of
    the steps chose what the target chose: float64 [1 + STEPS]. `penalty` is that of repetitions in
    a reply, which lies upon guesses as on the target's choices; of dialogues with one reply.
    """
    counts = batch.rows
    chosen = F.pad(batch.places, (0, 1), value=-1)[:, batch.start + 1 :]
    said = torch.where(F.pad(batch.counts, (1, -1)), batch.places, -1)
    seen = F.one_hot(said + 1, len(head) + 1).cumsum(1)[:, batch.start :, 1:] > 0
    dialogue, place = counts.nonzero(as_tuple=True)
    right = torch.ones(len(place), dtype=torch.bool, device=place.device)
    reached = [float(len(place))]
    for step in range(STEPS):
        # A draft that begins at `place` has its step's row so many tokens on.
        at = (place + step).clamp_max(counts.shape[1] - 1)
        there = counts[dialogue, at] & (place + step < counts.shape[1])
        logits = found[step][dialogue, at] @ head.t()
        lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
        guess = torch.where(seen[dialogue, at], lowered, logits).argmax(-1)
        right = right & there & (guess == chosen[dialogue, at])
        reached.append(float(right.sum()))
    return torch.tensor(reached, dtype=torch.float64)
