"""A lean Llama: the architecture that transformers loads, written for training on one CPU core.

The weights are a flat dictionary with transformers' names, so an export only has to save them. The
forward pass computes the same as `LlamaForCausalLM`, but with fused projections, a loss without the
whole logits, and compiled elementwise work. `llm.py export` compares the two. This module knows
nothing of the domain, of tokenizers or of files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
THETA = 10000.0
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """The sizes of a model. The embedding of `vocab` rows is the output layer too."""

    vocab: int
    width: int
    layers: int
    heads: int
    ff: int

    @property
    def head(self) -> int:
        """Return the width of one attention head."""
        return self.width // self.heads


def initial(shape: Shape, seed: int) -> Weights:
    """Draw float32 weights; projections into the residual stream are scaled down by depth."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int, scale: float = 0.02) -> Tensor:
        return torch.randn(*size, generator=generator) * scale

    d, ff, residual = shape.width, shape.ff, 0.02 / (2 * shape.layers) ** 0.5
    weights = {
        "model.embed_tokens.weight": normal(shape.vocab, d),
        "model.norm.weight": torch.ones(d),
    }
    for i in range(shape.layers):
        at = f"model.layers.{i}."
        weights[at + "input_layernorm.weight"] = torch.ones(d)
        weights[at + "post_attention_layernorm.weight"] = torch.ones(d)
        for name in ("q_proj", "k_proj", "v_proj"):
            weights[at + f"self_attn.{name}.weight"] = normal(d, d)
        weights[at + "self_attn.o_proj.weight"] = normal(d, d, scale=residual)
        for name in ("gate_proj", "up_proj"):
            weights[at + f"mlp.{name}.weight"] = normal(ff, d)
        weights[at + "mlp.down_proj.weight"] = normal(d, ff, scale=residual)
    return weights


@dataclass(frozen=True)
class Layer:
    """The weights of one layer. Projections with the same input are fused."""

    norm1: Tensor
    qkv: Tensor
    out: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


def fused(weights: Weights, layers: int) -> list[Layer]:
    """Return the layers of `weights`, with fused projections; this is differentiable."""
    found: list[Layer] = []
    for i in range(layers):
        at = f"model.layers.{i}."
        qkv = [weights[at + f"self_attn.{name}.weight"] for name in ("q_proj", "k_proj", "v_proj")]
        gate_up = [weights[at + f"mlp.{name}.weight"] for name in ("gate_proj", "up_proj")]
        found.append(
            Layer(
                weights[at + "input_layernorm.weight"],
                torch.cat(qkv),
                weights[at + "self_attn.o_proj.weight"],
                weights[at + "post_attention_layernorm.weight"],
                torch.cat(gate_up),
                weights[at + "mlp.down_proj.weight"],
            )
        )
    return found


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Apply root-mean-square normalisation, computed in float32."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    return wide.to(x.dtype) * weight


def angles(start: int, length: int, head: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the rotary embedding, each [length, head / 2]."""
    rates = THETA ** (-torch.arange(0, head, 2) / head)
    turn = torch.arange(start, start + length)[:, None].float() * rates
    return turn.cos().to(dtype), turn.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate `x` [..., length, head] by the angles of its positions."""
    one, two = x.chunk(2, -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)


def before_attention(
    x: Tensor,
    norm: Tensor,
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    rows: int,
    length: int,
    head: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute queries, keys and values from `x` [rows * length, width].

    Each is [rows, heads, length, head].
    """
    split = F.linear(rms_norm(x, norm), qkv).view(rows, length, 3, -1, head).permute(2, 0, 3, 1, 4)
    query, key = rotate(split[0], cos, sin), rotate(split[1], cos, sin)
    return query.contiguous(), key.contiguous(), split[2].contiguous()


def after_attention(
    x: Tensor, mixed: Tensor, out: Tensor, norm: Tensor, gate_up: Tensor, down: Tensor
) -> Tensor:
    """Compute a layer after its attention: output projection, feed-forward, residuals."""
    x = x + F.linear(mixed, out)
    gate, up = F.linear(rms_norm(x, norm), gate_up).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Compute causal attention over [rows, heads, length, head].

    Up to 256 tokens, two plain products are faster on a CPU than the flash kernel's backward pass.
    """
    rows, heads, length, head = query.shape
    if length > 256:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    mask = torch.full((length, length), float("-inf"), dtype=query.dtype).triu(1)
    flat = (rows * heads, length, head)
    scores = torch.baddbmm(
        mask.expand(rows * heads, length, length),
        query.view(flat),
        key.view(flat).transpose(1, 2),
        alpha=head**-0.5,
    )
    return torch.bmm(torch.softmax(scores, -1), value.view(flat)).view(query.shape)


@dataclass(frozen=True)
class Pieces:
    """The functions for the two halves of a layer, plain or compiled."""

    before: Callable[..., tuple[Tensor, Tensor, Tensor]] = before_attention
    after: Callable[..., Tensor] = after_attention


PLAIN = Pieces()


def compiled() -> Pieces:
    """Return both halves compiled, once for each batch shape. They are twice as fast.

    This needs a C++ compiler.
    """
    torch._dynamo.config.recompile_limit = 256
    return Pieces(
        torch.compile(before_attention, dynamic=False),
        torch.compile(after_attention, dynamic=False),
    )


def hidden(weights: Weights, shape: Shape, ids: Tensor, pieces: Pieces = PLAIN) -> Tensor:
    """Return the last hidden states [rows * length, width] of `ids` [rows, length].

    Shorter rows are padded on the right.
    """
    rows, length = ids.shape
    embedding = weights["model.embed_tokens.weight"]
    cos, sin = angles(0, length, shape.head, embedding.dtype)
    x = F.embedding(ids.reshape(-1), embedding)
    for layer in fused(weights, shape.layers):
        heads = pieces.before(x, layer.norm1, layer.qkv, cos, sin, rows, length, shape.head)
        mixed = causal_attention(*heads).transpose(1, 2).reshape(rows * length, shape.width)
        x = pieces.after(x, mixed, layer.out, layer.norm2, layer.gate_up, layer.down)
    return rms_norm(x, weights["model.norm.weight"])


class _CrossEntropy(torch.autograd.Function):
    """Weighted cross entropy through the output layer, for 1024 positions at a time.

    The forward pass computes the gradients too, so the whole logits never exist at once.
    """

    @staticmethod
    def forward(ctx, states, embedding, ids, probabilities, weights):  # type: ignore[no-untyped-def]
        d_states, d_embedding = torch.empty_like(states), torch.zeros_like(embedding)
        losses = torch.empty(len(weights))
        scale = weights / weights.sum().clamp(min=1e-9)
        for i in range(0, len(weights), 1024):
            part = slice(i, i + 1024)
            logs = torch.log_softmax(F.linear(states[part], embedding).float(), -1)
            right = probabilities[part]
            losses[part] = -(logs.gather(1, ids[part]) * right).sum(-1)
            slope = logs.exp_().scatter_add_(1, ids[part], -right) * scale[part, None]
            slope = slope.to(states.dtype)
            d_states[part] = slope @ embedding
            d_embedding.addmm_(slope.t(), states[part])
        ctx.save_for_backward(d_states, d_embedding)
        return losses

    @staticmethod
    def backward(ctx, *_):  # type: ignore[no-untyped-def]
        return (*ctx.saved_tensors, None, None, None)


def cross_entropy(
    states: Tensor, embedding: Tensor, ids: Tensor, probabilities: Tensor, weights: Tensor
) -> Tensor:
    """Return the losses [positions] against sparse distributions.

    `ids` and `probabilities` are [positions, k]; the probabilities of a position sum to 1. The
    gradient is always that of the mean, weighted by `weights` [positions]. So call
    `.sum().backward()` on the result.
    """
    return _CrossEntropy.apply(states, embedding, ids, probabilities, weights)  # type: ignore[no-any-return]


@torch.no_grad()
def generate(
    weights: Weights,
    shape: Shape,
    prompts: Sequence[Sequence[int]],
    stop: int,
    limit: int = 120,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[list[int]]:
    """Generate replies to prompts of any lengths, all at once, without the `stop` token.

    Prompts are padded on the left. Rotary positions are relative, so the shift changes nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    embedding = weights["model.embed_tokens.weight"]
    layers = fused(weights, shape.layers)
    rows, width = len(prompts), max(map(len, prompts))
    ids = torch.zeros(rows, width, dtype=torch.long)
    visible = torch.ones(rows, 1, 1, width + limit, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        visible[row, :, :, : width - len(prompt)] = False
    empty = torch.zeros(rows, shape.heads, width + limit, shape.head, dtype=embedding.dtype)
    caches = [(empty, empty.clone())] + [(empty.clone(), empty.clone()) for _ in layers[1:]]
    chosen = torch.full((rows, limit), stop)
    live = torch.arange(rows)  # the prompt of each row of the caches
    start, end = 0, width
    for step in range(limit):
        cos, sin = angles(start, end - start, shape.head, embedding.dtype)
        here = torch.arange(start, end)[:, None]
        # A padded position attends to itself, or its softmax would be over nothing.
        mask = visible[..., :end] & (torch.arange(end) <= here) | (torch.arange(end) == here)
        x = F.embedding(ids.reshape(-1), embedding)
        for layer, (keys, values) in zip(layers, caches, strict=True):
            query, key, value = before_attention(
                x, layer.norm1, layer.qkv, cos, sin, len(live), end - start, shape.head
            )
            keys[:, :, start:end], values[:, :, start:end] = key, value
            mixed = F.scaled_dot_product_attention(
                query, keys[:, :, :end], values[:, :, :end], attn_mask=mask
            )
            mixed = mixed.transpose(1, 2).reshape(len(x), shape.width)
            x = after_attention(x, mixed, layer.out, layer.norm2, layer.gate_up, layer.down)
        last = x.view(len(live), end - start, -1)[:, -1]
        logits = F.linear(rms_norm(last, weights["model.norm.weight"]), embedding).float()
        if temperature:
            probabilities = torch.softmax(logits / temperature, -1)
            ids = torch.multinomial(probabilities, 1, generator=generator)
        else:
            ids = logits.argmax(-1, keepdim=True)
        chosen[live, step] = torch.where((chosen[live] == stop)[:, :step].any(-1), stop, ids[:, 0])
        going = chosen[live, step] != stop
        if not going.any():
            break
        if going.sum() <= 0.7 * len(live):  # drop ended rows, which cost as much as others
            live, ids, visible = live[going], ids[going], visible[going]
            caches = [(keys[going], values[going]) for keys, values in caches]
        start, end = end, end + 1
    return [row[: row.index(stop)] if stop in row else row for row in chosen.tolist()]
