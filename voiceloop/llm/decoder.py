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

LEAN = ("llama", "qwen2", "qwen3", "mistral")
"""Values of `model_type` that `LeanDecoder` may take."""

CHUNK = 64
"""Most tokens of a prompt in one step: a step bounds how long cancellation takes."""


class Decoder(Protocol):
    """A model that extends a sequence."""

    vocab: int
    """Length of a row of logits."""
    parameters: int
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
    """Weights of one layer, [out, in] each; projections of the same input are one."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


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
        self._eps: float = config.rms_norm_eps
        self._layers = [_fuse(layer) for layer in body.layers]
        self._embedding: Tensor = body.embed_tokens.weight.detach()
        self._norm: Tensor = body.norm.weight.detach()
        self._head: Tensor = cast(Any, model).lm_head.weight.detach()[:vocab]
        with torch.inference_mode():
            positions = torch.arange(capacity, device=self.device).unsqueeze(0)
            cos, sin = body.rotary_emb(self._norm, positions)
            # rotate_half(x) is x rolled by half with its first half negated; the sign goes here.
            sign = torch.ones_like(sin[0])
            sign[:, : self._dim // 2] = -1
            self._cos, self._sin = cos[0].unsqueeze(1), (sin[0] * sign).unsqueeze(1)

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        rows, start = len(ids), cache.length
        rotated = self._queries + self._groups
        cos, sin = self._cos[start : start + rows], self._sin[start : start + rows]
        x = F.embedding(ids, self._embedding)
        mask = None
        if rows > 1:  # row i attends to everything up to itself
            mask = torch.full((rows, start + rows), -torch.inf, dtype=x.dtype, device=x.device)
            mask = mask.triu_(start + 1)
        for index, layer in enumerate(self._layers):
            h = self._rms(x, layer.attention_norm)
            qkv = F.linear(h, layer.qkv, layer.qkv_bias)
            qkv = qkv.view(rows, rotated + self._groups, self._dim)
            qk = qkv[:, :rotated]
            if layer.q_norm is not None and layer.k_norm is not None:
                q, k = qk.split((self._queries, self._groups), 1)
                qk = torch.cat((self._rms(q, layer.q_norm), self._rms(k, layer.k_norm)), 1)
            qk = torch.addcmul(qk * cos, qk.roll(self._dim // 2, -1), sin).transpose(0, 1)
            values = qkv[:, rotated:].transpose(0, 1)
            keys, values = cache.extend(index, qk[self._queries :], values)
            attended = F.scaled_dot_product_attention(
                qk[: self._queries].unsqueeze(0),
                keys.unsqueeze(0),
                values.unsqueeze(0),
                attn_mask=mask,
                enable_gqa=self._groups < self._queries,
            )
            attended = attended[0].transpose(0, 1).reshape(rows, self._queries * self._dim)
            x = torch.addmm(x, attended, layer.out.t())
            h = self._rms(x, layer.mlp_norm)
            gate, up = F.linear(h, layer.gate_up).chunk(2, -1)
            x = torch.addmm(x, F.silu(gate) * up, layer.down.t())
        cache.advance(rows)
        return F.linear(self._rms(x[-keep:], self._norm), self._head)

    def _rms(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self._eps)


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


def _fuse(layer: Any) -> _Layer:
    """Take the weights of one of transformers' layers out of it."""
    attention, mlp = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    biased = attention.q_proj.bias is not None
    fused = _Layer(
        attention_norm=layer.input_layernorm.weight.detach(),
        qkv=torch.cat([part.weight for part in projections]).detach(),
        qkv_bias=torch.cat([part.bias for part in projections]).detach() if biased else None,
        q_norm=attention.q_norm.weight.detach() if hasattr(attention, "q_norm") else None,
        k_norm=attention.k_norm.weight.detach() if hasattr(attention, "k_norm") else None,
        out=attention.o_proj.weight.detach(),
        mlp_norm=layer.post_attention_layernorm.weight.detach(),
        gate_up=torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)).detach(),
        down=mlp.down_proj.weight.detach(),
    )
    layer.to("meta")  # or both copies would be held until the last layer is done
    return fused
