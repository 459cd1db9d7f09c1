"""One forward pass of a causal language model over a few new tokens.

`LeanDecoder` runs the Llama family from fused weights with a handful of calls for each layer:
with models of a few million parameters, the layers of Python around the arithmetic cost more than
the arithmetic. `TransformersDecoder` runs everything else through transformers' own forward. Both
write into a `KvCache` and know nothing of what the tokens mean.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from voiceloop.llm.cache import KvCache, TransformersCache
from voiceloop.llm.kernels import Linear, Norm, linear

LEAN = ("llama", "qwen2", "qwen3", "mistral")
"""Values of `model_type` that `LeanDecoder` may take."""

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


def decoder(model: PreTrainedModel, vocab: int, capacity: int) -> Decoder:
    """The quickest decoder there is for `model`, which may lose its weights to it.

    Logits are cut to the first `vocab` tokens: what lies beyond is padding. `capacity` is the
    longest sequence.
    """
    if _is_lean(model):
        return LeanDecoder(model, vocab, capacity)
    return TransformersDecoder(model, vocab)


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


class TransformersDecoder:
    """Any causal model with full attention, by transformers' own forward."""

    def __init__(self, model: PreTrainedModel, vocab: int) -> None:
        self.vocab = vocab
        self.parameters = model.num_parameters()
        self.device = model.device
        self._model = cast(Any, model.eval())
        self._layers: int = model.config.get_text_config().num_hidden_layers
        embedding: Tensor = self._model.get_input_embeddings().weight
        # Of an embedding that is not the head too, only rows are read.
        tied = embedding is self._model.get_output_embeddings().weight
        looked_up = 0 if tied else embedding.nbytes
        self.pass_bytes = sum(weight.nbytes for weight in model.parameters()) - looked_up

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        states = TransformersCache(cache, self._layers)
        output = self._model(
            input_ids=ids.unsqueeze(0), past_key_values=states, use_cache=True, logits_to_keep=keep
        )
        cache.advance(len(ids))
        return output.logits[0, -keep:, : self.vocab]


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

    def __init__(self, model: PreTrainedModel, vocab: int, capacity: int) -> None:
        config = model.config
        body = cast(Any, model).model
        self.vocab = vocab
        self.parameters = model.num_parameters()
        self.device = model.device
        attention = body.layers[0].self_attn
        self._dim: int = attention.head_dim
        self._queries: int = config.num_attention_heads
        self._groups: int = config.num_key_value_heads
        eps: float = config.rms_norm_eps
        with torch.inference_mode():
            self._layers = [_fuse(layer, eps) for layer in body.layers]
            self._embedding: Tensor = body.embed_tokens.weight.detach()
            self._norm = Norm(body.norm.weight, eps)
            self._head = linear(cast(Any, model).lm_head.weight[:vocab])
            matrices = [self._head]
            for layer in self._layers:
                matrices += (layer.qkv, layer.out, layer.gate_up, layer.down)
            self.pass_bytes = sum(matrix.nbytes for matrix in matrices)
            positions = torch.arange(capacity, device=self.device).unsqueeze(0)
            cos, sin = body.rotary_emb(body.norm.weight, positions)
            # rotate_half(x) is x rolled by half with its first half negated; the sign goes here.
            sign = torch.ones_like(sin[0])
            sign[:, : self._dim // 2] = -1
            self._cos, self._sin = cos[0].unsqueeze(1), (sin[0] * sign).unsqueeze(1)

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        rows, start = len(ids), cache.length
        queries, groups, dim = self._queries, self._groups, self._dim
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


def _is_lean(model: PreTrainedModel) -> bool:
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in LEAN
        and config.hidden_act == "silu"
        # The tables of these two change with the length of the sequence.
        and rope.get("rope_type", "default") not in ("dynamic", "longrope")
        and not getattr(config, "mlp_bias", False)
        and cast(Any, model).model.layers[0].self_attn.o_proj.bias is None
        # Quantised linears are subclasses with weights of their own making.
        and {type(part) for part in model.modules() if isinstance(part, nn.Linear)} == {nn.Linear}
    )


def _fuse(layer: Any, eps: float) -> _Layer:
    """Take the weights of one of transformers' layers out of it."""
    attention, mlp = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [part.bias for part in projections if part.bias is not None]
    heads = hasattr(attention, "q_norm")
    fused = _Layer(
        attention_norm=Norm(layer.input_layernorm.weight, eps),
        qkv=linear(
            torch.cat([part.weight for part in projections]), torch.cat(biases) if biases else None
        ),
        q_norm=Norm(attention.q_norm.weight, eps) if heads else None,
        k_norm=Norm(attention.k_norm.weight, eps) if heads else None,
        out=linear(attention.o_proj.weight),
        mlp_norm=Norm(layer.post_attention_layernorm.weight, eps),
        gate_up=linear(torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight))),
        down=linear(mlp.down_proj.weight),
    )
    layer.to("meta")  # or both copies would be held until the last layer is done
    return fused
