"""The layer that is trained: it predicts the target's next feature from earlier ones.

A feature is the input of the target's head. The layer has the shape of EAGLE (Li et al. 2024, arXiv
2401.15077): the row of a token takes the token's embedding and the target's feature before the
token, and gives the feature after the token. When the layer drafts, it uses its own features from
the second token on. The training does the same (Zhang et al. 2024, arXiv 2408.15766): it computes
every row once with the target's feature, and then `STEPS` - 1 times with the layer's own feature
from the step before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voiceloop.llm.draft.trained import SCALE, DraftShape
from voiceloop.llm.model.checkpoint import rotary_table

STEPS = 4
"""Number of tokens that are drafted one after another in training."""
FADE = 0.8
"""Weight of a step's loss, relative to the loss of the step before."""
FEATURES = 0.1
"""Weight of the loss of features, relative to the cross-entropy of tokens."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Dialogues side by side, padded at their ends to the same length."""

    embedded: Tensor
    """Embedding of each token, [dialogues, tokens, hidden]."""
    features: Tensor
    """The target's feature after each token, [dialogues, tokens, hidden]."""
    counts: Tensor
    """Which rows count: True if the target chose the next token, bool [dialogues, tokens]."""
    places: Tensor
    """Index of each token in the list of tokens that the draft chooses from, [dialogues, tokens];
    below 0 for tokens outside the list."""

    @property
    def start(self) -> int:
        """The first row whose feature is computed: `STEPS` rows before the first row that counts.
        Earlier rows only give keys and values."""
        places = self.counts.any(0).nonzero()
        return max(0, int(places[0]) - STEPS) if len(places) else 0

    @property
    def rows(self) -> Tensor:
        """Which rows from `start` on count, bool [dialogues, tokens - start]. The first `STEPS`
        rows do not count, because they lack earlier features."""
        counts = self.counts[:, self.start :].clone()
        counts[:, :STEPS] = False
        return counts


class FeatureLayer(nn.Module):
    """One layer of the Llama family over embeddings and features, with random initial weights.

    Its attributes are the layer's matrices and norms.
    """

    def __init__(self, shape: DraftShape, embedding_size: float, feature_sizes: Tensor) -> None:
        """`embedding_size` is the root mean square of embeddings. `feature_sizes` [hidden] is the
        root mean square of each entry of a feature."""
        super().__init__()
        self.shape = shape
        hidden, dim = shape.hidden, shape.dim

        def linear(inputs: int, outputs: int, scale: float = 1.0) -> nn.Linear:
            made = nn.Linear(inputs, outputs, bias=False)
            nn.init.normal_(made.weight, std=scale * inputs**-0.5)
            return made

        self.fuse = linear(2 * hidden, hidden, 0.5)
        with torch.no_grad():  # initially the layer predicts the previous feature
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
        """Return the features after each token from `batch.start` on. The list has one tensor
        [dialogues, tokens - start, hidden] for each of the `steps` chained steps.

        The first step takes the target's features. Each later step takes the layer's own features
        from the step before.
        """
        embedded, start = batch.embedded / self.embedding_size, batch.start
        # Row j has token j and the target's feature before it.
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
        """Apply the layer to the rows of `x` from `start` on. They attend to all rows. The keys and
        values of all rows of `x` are added to `seen`."""
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
        """Return the weights by the names that `llm.draft.trained` reads."""
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
    """Apply rotary positions (Su et al. 2021) to `x` [..., tokens, dim]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _attend(q: Tensor, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the attention of the newest chained step, in the shape of `q` [dialogues, heads, rows,
    dim].

    `seen` has the keys and values of each step. Step 0 has rows for all tokens. The later steps,
    and `q`, have rows only for the last tokens. In step s the row of token p attends to the rows of
    step 0 up to token p - s, and to one row of each later step n: the row of token p - s + n.
    """
    (keys, values), later = seen[0], len(seen) - 1
    fold, rows, tokens = q.shape[1] // keys.shape[1], q.shape[2], keys.shape[2]

    def spread(x: Tensor, back: int) -> Tensor:
        """Repeat `x` for each query head, and move its rows `back` tokens later."""
        x = x.repeat_interleave(fold, 1)
        return F.pad(x, (0, 0, back, 0))[:, :, :rows] if back else x

    places = torch.arange(tokens, device=q.device)
    unseen = places > places[tokens - rows :].unsqueeze(1) - later
    scores = q @ spread(keys, 0).transpose(2, 3)
    parts = [scores.masked_fill(unseen, float("-inf"))]
    for step, (key, _) in enumerate(seen[1:], 1):
        parts.append((q * spread(key, later - step)).sum(-1, keepdim=True))
    weights = (torch.cat(parts, -1).float() * q.shape[-1] ** -0.5).softmax(-1)
    attended = weights[..., :tokens] @ spread(values, 0)
    for step, (_, value) in enumerate(seen[1:], 1):
        at = tokens + step - 1
        attended = attended + weights[..., at : at + 1] * spread(value, later - step)
    return attended


def losses(batch: Batch, found: list[Tensor], head: Tensor) -> Tensor:
    """Return the loss of the chained steps `found`, with step s weighted by `FADE` ** s.

    The loss of a step is the cross-entropy with the target's distribution over the tokens that the
    draft chooses from, plus `FEATURES` times the smooth L1 distance from the target's features.
    `head` [tokens, hidden] are the rows of the head for these tokens.
    """
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
    """Count the rows in which the first n chained steps chose the target's tokens, for each n:
    float64 [1 + STEPS]. Entry 0 is the number of all rows that count.

    `penalty` is the penalty for repetition in a reply. The target chose its tokens with this
    penalty, so it is applied to the draft's logits too. Each dialogue has one reply.
    """
    counts = batch.rows
    chosen = F.pad(batch.places, (0, 1), value=-1)[:, batch.start + 1 :]
    said = torch.where(F.pad(batch.counts, (1, -1)), batch.places, -1)
    seen = F.one_hot(said + 1, len(head) + 1).cumsum(1)[:, batch.start :, 1:] > 0
    dialogue, place = counts.nonzero(as_tuple=True)
    right = torch.ones(len(place), dtype=torch.bool, device=place.device)
    reached = [float(len(place))]
    for step in range(STEPS):
        # Step s of a draft that begins at `place` is in the row s tokens later.
        at = (place + step).clamp_max(counts.shape[1] - 1)
        there = counts[dialogue, at] & (place + step < counts.shape[1])
        logits = found[step][dialogue, at] @ head.t()
        lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
        guess = torch.where(seen[dialogue, at], lowered, logits).argmax(-1)
        right = right & there & (guess == chosen[dialogue, at])
        reached.append(float(right.sum()))
    return torch.tensor(reached, dtype=torch.float64)


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round matrices to int8 and other weights to 16 bits. A matrix is w ≈ q · scale, with one
    scale for each row.

    The scales are stored under the matrix's name and `SCALE`. This halves the size of the files and
    does not lower the acceptance of draft tokens.
    """
    found = dict[str, Tensor]()
    for name, weight in weights.items():
        found[name] = weight.half()
        if weight.dim() == 2:
            scale = (weight.float().abs().amax(1, keepdim=True) / 127).clamp_min(1e-9)
            found[name] = (weight.float() / scale).round().to(torch.int8)
            found[name + SCALE] = scale
    return found
