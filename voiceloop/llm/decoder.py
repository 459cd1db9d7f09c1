"""One forward pass of a causal language model over a few new tokens.

`LeanDecoder` runs the Llama family from fused weights with a handful of calls for each layer:
with models of a few million parameters, the layers of Python around the arithmetic cost more than
the arithmetic. Everything else runs through transformers' own forward, by the decoder in `hf`. Both
write into a `KvCache` and know nothing of what the tokens mean.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.llm.cache import KvCache
from voiceloop.llm.checkpoint import EMBEDDING, HEAD, NORM, Checkpoint
from voiceloop.llm.kernels import Linear, Norm, linear

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNK = 64
"""Most tokens of a prompt in one step: a step bounds how long cancellation takes."""


class Decoder(Protocol):
    """A model that extends a sequence."""

    vocab: int
    """Length of a row of logits."""
    parameters: int
    pass_bytes: int
    """Bytes of weights that a pass reads, of large matrices."""
    device: torch.device

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Feed `ids` (int64 [rows]) after the tokens that `cache` holds, and add them to it.

        Returns the logits after each of the last `keep` of them, [keep, vocab].
        """
        ...


def decoder(model: Checkpoint | PreTrainedModel, vocab: int, capacity: int) -> Decoder:
    """The quickest decoder there is for `model`, which may lose its weights to it.

    Logits are cut to the first `vocab` tokens: what lies beyond is padding. `capacity` is the
    longest sequence.
    """
    if isinstance(model, Checkpoint):
        return LeanDecoder(model, vocab, capacity)
    from voiceloop.llm.hf import TransformersDecoder, checkpoint_of

    taken = checkpoint_of(model, capacity)
    return LeanDecoder(taken, vocab, capacity) if taken else TransformersDecoder(model, vocab)


def feed(
    model: Decoder, cache: KvCache, ids: Sequence[int]
) -> Generator[None, None, Tensor | None]:
    """Extend `cache` to all of `ids`, whose beginning it holds; pauses between chunks.

    Returns the logits after the last of them, [1, vocab], or None where nothing was to be done.
    """
    logits: Tensor | None = None
    while cache.length < len(ids):
        if logits is not None:
            yield None
        chunk = ids[cache.length : cache.length + CHUNK]
        logits = model.forward(torch.tensor(chunk, device=model.device), cache, 1)
    return logits


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer; projections of the same input are one."""

    attention_norm: Norm
    qkv: Linear
    q_norm: Norm | None
    k_norm: Norm | None
    out: Linear
    mlp_norm: Norm
    gate_up: Linear
    down: Linear


class LeanDecoder:
    """Llama, Qwen2, Qwen3 and Mistral: RMSNorm, rotary positions, grouped queries, SwiGLU."""

    def __init__(self, model: Checkpoint, vocab: int, capacity: int) -> None:
        """`model` loses its weights."""
        weights, eps = model.weights, model.eps
        self.vocab = vocab
        self.parameters = model.parameters
        self._heads = model.heads, model.groups, model.dim
        with torch.inference_mode():
            cos, sin = model.rotary(capacity)
            self._layers = [_fuse(weights, index, eps) for index in range(model.layers)]
            self._embedding = weights[EMBEDDING]
            self.device = self._embedding.device
            self._norm = Norm(weights[NORM], eps)
            self._head = linear(weights.pop(HEAD, self._embedding)[:vocab])
            matrices = [self._head]
            for layer in self._layers:
                matrices += (layer.qkv, layer.out, layer.gate_up, layer.down)
            self.pass_bytes = sum(matrix.nbytes for matrix in matrices)
            # rotate_half(x) is x rolled by half with its first half negated; the sign goes here.
            sign = torch.ones_like(sin)
            sign[:, : model.dim // 2] = -1
            self._cos, self._sin = cos.unsqueeze(1), (sin * sign).unsqueeze(1)

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        rows, start = len(ids), cache.length
        queries, groups, dim = self._heads
        cos, sin = self._cos[start : start + rows], self._sin[start : start + rows]
        x = F.embedding(ids, self._embedding)
        mask = None
        if rows > 1:  # row i attends to everything up to itself
            mask = torch.full((rows, start + rows), -torch.inf, dtype=x.dtype, device=x.device)
            mask = mask.triu_(start + 1)
        for index, layer in enumerate(self._layers):
            qkv = layer.qkv(layer.attention_norm(x)).view(rows, queries + 2 * groups, dim)
            q, k, qk = qkv[:, :queries], qkv[:, queries:-groups], qkv[:, :-groups]
            if layer.q_norm is not None and layer.k_norm is not None:
                q.copy_(layer.q_norm(q))
                k.copy_(layer.k_norm(k))
            torch.addcmul(qk * cos, qk.roll(dim // 2, -1), sin, out=qk)
            (states,) = cache.extend(index, qkv[:, queries:])
            keys, values = states.transpose(0, 1).unsqueeze(0).split(groups, 1)
            attended = F.scaled_dot_product_attention(
                q.transpose(0, 1).unsqueeze(0),
                keys,
                values,
                attn_mask=mask,
                enable_gqa=groups < queries,
            )
            x = layer.out.add(attended.transpose(1, 2).reshape(rows, queries * dim), x)
            gate, up = layer.gate_up(layer.mlp_norm(x)).chunk(2, -1)
            x = layer.down.add(F.silu(gate).mul_(up), x)
        cache.advance(rows)
        return self._head(self._norm(x[-keep:]))


def _fuse(weights: dict[str, Tensor], index: int, eps: float) -> _Layer:
    """Take the weights of a layer out of `weights`, so that no two copies of all are held."""
    prefix = f"model.layers.{index}."

    def take(*names: str) -> Tensor:
        found = [weights.pop(f"{prefix}{name}") for name in names]
        return torch.cat(found) if len(found) > 1 else found[0]

    def norm(name: str) -> Norm | None:
        weight = weights.pop(f"{prefix}{name}.weight", None)
        return None if weight is None else Norm(weight, eps)

    projections = [f"self_attn.{which}_proj" for which in "qkv"]
    biased = f"{prefix}{projections[0]}.bias" in weights
    return _Layer(
        attention_norm=Norm(take("input_layernorm.weight"), eps),
        qkv=linear(
            take(*(f"{name}.weight" for name in projections)),
            take(*(f"{name}.bias" for name in projections)) if biased else None,
        ),
        q_norm=norm("self_attn.q_norm"),
        k_norm=norm("self_attn.k_norm"),
        out=linear(take("self_attn.o_proj.weight")),
        mlp_norm=Norm(take("post_attention_layernorm.weight"), eps),
        gate_up=linear(take("mlp.gate_proj.weight", "mlp.up_proj.weight")),
        down=linear(take("mlp.down_proj.weight")),
    )
