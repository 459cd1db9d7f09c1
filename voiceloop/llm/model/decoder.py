"""One forward pass of a causal language model over a few new tokens.

`LeanDecoder` runs the Llama family from fused weights, with few calls of torch for each layer. In
models of a few million parameters, the Python calls take longer than the arithmetic. All other
models run through transformers' own forward method, by the decoder in `hf`. Both decoders write
into a `KvCache`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.llm.gguf.file import GgufModel, StoredMatrix
from voiceloop.llm.model.attention import (
    Branching,
    Following,
    PlacedRows,
    Rows,
    SlotPosition,
    has_kernel,
)
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, NORM, Checkpoint, Sight
from voiceloop.llm.model.kernels import operations
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.model.operations import PLAIN, Linear, Norm, Operations, linear
from voiceloop.llm.rules.verify import Tree
from voiceloop.process import all_cores

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNK = 64
"""Maximum number of tokens of a prompt in one step. A cancellation takes effect at the end of a
step."""
MANY = 24
"""Minimum number of rows of a pass that runs on all cores of the CPU. The passes of rounds have
fewer rows."""
_CHUNKS = {"cuda": 512}
"""The values of `CHUNK` for devices on which a pass takes much less time."""


class CausalModel(Protocol):
    """A model that computes logits for new tokens. The new tokens follow the tokens in a cache."""

    vocab: int
    """The length of a row of logits."""
    parameters: int
    pass_bytes: int
    """The size of all large matrices that a pass reads, in bytes."""
    device: torch.device
    dtype: torch.dtype
    """The type of weights and of the rows of a cache."""
    chunk: int
    """Maximum number of tokens of a prompt in one step."""

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Compute `ids` (int64 [rows]) after the tokens in `cache`, and add their rows to `cache`.

        Returns the logits after each of the last `keep` ids, [keep, vocab].
        """
        ...


class Decoder(CausalModel, Protocol):
    """A model that also computes trees of tokens, and passes of fixed shapes."""

    attends_bucket: bool
    """True if a pass of fixed shape attends to all rows of a slot up to its fixed limit, with a
    mask. False if a kernel reads only the rows that are in use."""

    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        """Compute `ids` like `forward`. The ids at the end are nodes of `tree`. Earlier nodes of
        the same tree may already be the last rows of the cache."""
        ...

    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        """Compute `ids` like `forward`, but write at `place` in a slot. The pass can be captured.

        Shapes depend only on `len(ids)`, `keep` and `place.reach`. Nothing is read back from the
        device. `KvCache.length` stays as it is.
        """
        ...


class TargetDecoder(Decoder, Protocol):
    """A model that can be the target of a trained draft. The draft uses its embedding."""

    @property
    def embedding(self) -> Tensor | StoredMatrix:
        """The embeddings of the tokens, [vocab or more, hidden]."""
        ...


def decoder(
    model: Checkpoint | PreTrainedModel | GgufModel,
    vocab: int,
    capacity: int,
    *,
    features: bool = False,
    ahead: GgufModel | None = None,
) -> TargetDecoder:
    """Build the quickest decoder for `model`. The decoder may remove the weights from `model`.

    Logits are cut to the first `vocab` tokens; the rest is padding. `capacity` is the maximum
    length of a sequence in tokens. With `features`, caches also keep the inputs of the head.
    `ahead` is that of `LlamaDecoder`.
    """
    if isinstance(model, GgufModel):  # such a model is never used with trees or places
        return cast(TargetDecoder, LlamaDecoder(model, vocab, features=features, ahead=ahead))
    if isinstance(model, Checkpoint):
        return LeanDecoder(model, vocab, capacity, features=features)
    from voiceloop.llm.model.hf import TransformersDecoder, checkpoint_of

    if taken := checkpoint_of(model):
        return LeanDecoder(taken, vocab, capacity, features=features)
    return TransformersDecoder(model, vocab, chunk(model.device), features=features)


def chunk(device: torch.device) -> int:
    """Return the maximum number of tokens of a prompt in one step of torch on this device."""
    return _CHUNKS.get(device.type, CHUNK)


def feed(
    model: CausalModel, cache: KvCache, ids: Sequence[int]
) -> Generator[None, None, Tensor | None]:
    """Compute the rows of `ids` that `cache` lacks, and yield between chunks.

    The tokens in the cache must be a prefix of `ids`. Returns the logits after the last id, [1,
    vocab], or None if the cache lacked no row.
    """
    logits: Tensor | None = None
    while cache.length < len(ids):
        if logits is not None:
            yield None
        piece = ids[cache.length : cache.length + model.chunk]
        logits = model.forward(torch.tensor(piece, device=model.device), cache, 1)
    return logits


@dataclass(frozen=True, slots=True)
class _DecoderLayer:
    """The weights of one layer. Projections of the same input are fused into one matrix."""

    window: int | None
    """Number of tokens that a row sees, its own token included; None for all tokens up to its
    own."""
    table: int | None
    """The index of the layer's table of rotary positions; None if the layer has none."""
    attention_norm: Norm
    qkv: Linear
    q_norm: Norm | None
    k_norm: Norm | None
    out: Linear
    out_norm: Norm | None
    mlp_norm: Norm
    gate_up: Linear
    down: Linear
    down_norm: Norm | None


class LeanDecoder:
    """Runs Llama, Qwen2, Qwen3, Mistral, SmolLM3 and Gemma 3.

    These models have RMSNorm, rotary positions in all or most layers, grouped-query attention, and
    SwiGLU or GeGLU. Some have sliding windows, or norms after attention and MLP. The public
    attributes are those of the protocol `Decoder`.
    """

    def __init__(
        self, model: Checkpoint, vocab: int, capacity: int, *, features: bool = False
    ) -> None:
        """Remove the weights from `model`. With `features`, caches also keep the inputs of the
        head."""
        self.vocab = vocab
        self.parameters = model.parameters
        self.dtype = model.dtype
        self._features = features
        self._heads = model.heads, model.groups, model.dim
        self._activation, self._scale = model.activation, model.attention_scale
        with torch.inference_mode():
            rotary_sights = [
                sight for sight in dict.fromkeys(model.sights) if sight.rotary is not None
            ]
            self._rotary = [_rotary_table(sight, capacity) for sight in rotary_sights]
            builder = _LayerBuilder(model, rotary_sights)
            self._layers = [builder.layer(index) for index in range(len(model.sights))]
            self.normed = builder.norm(NORM)
            """The norm between the last layer and the head."""
            self.embedding = builder.wide(model.weights.pop(EMBEDDING))
            self.device = self.embedding.device
            self._multiplier = (
                None
                if model.embedding_scale is None
                else torch.tensor(model.embedding_scale, dtype=self.dtype, device=self.device)
            )
            head = model.weights.pop(HEAD, None)
            self._head = linear(
                _padded(self.embedding if head is None else builder.wide(head), vocab)
            )
        self.chunk = chunk(self.device)
        self._captured = operations(self.device, self.dtype)
        matrices = [self._head]
        for layer in self._layers:
            matrices += (layer.qkv, layer.out, layer.gate_up, layer.down)
        self.pass_bytes = sum(matrix.nbytes for matrix in matrices)
        self.attends_bucket = not all(
            has_kernel(self.device, self.dtype, *self._heads, window)
            for window in {sight.window for sight in model.sights}
        )

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        logits = self._pass(ids, Following(cache, len(ids)), keep)
        cache.advance(len(ids))
        return logits

    @torch.inference_mode()
    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        logits = self._pass(ids, Branching(cache, len(ids), tree, self.device), keep)
        cache.advance(len(ids))
        return logits

    @torch.inference_mode()
    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        return self._pass(ids, PlacedRows(place, len(ids)), keep, self._captured)

    def _pass(self, ids: Tensor, rows: Rows, keep: int, do: Operations = PLAIN) -> Tensor:
        large = len(ids) >= MANY and self.device.type == "cpu"
        with all_cores() if large else nullcontext():
            return self._logits(ids, rows, keep, do)

    def _logits(self, ids: Tensor, rows: Rows, keep: int, do: Operations) -> Tensor:
        x = F.embedding(ids, self.embedding)
        if self._multiplier is not None:
            x = x * self._multiplier
        x = self.through(x, rows, do)
        if not self._features:
            return self.head(do.rms_norm(self.normed, x[-keep:]), do)
        features = do.rms_norm(self.normed, x)
        rows.keep(features)
        return self.head(features[-keep:], do)

    def head(self, features: Tensor, do: Operations = PLAIN) -> Tensor:
        """Compute the logits, [rows, vocab], from the head's input."""
        return do.product(self._head, features)[:, : self.vocab]

    def through(self, x: Tensor, rows: Rows, do: Operations = PLAIN) -> Tensor:
        """Pass `x` [rows, hidden] through all layers; the result has the same shape."""
        queries, groups, dim = self._heads
        shape = len(x), queries + 2 * groups, dim
        angles = [(cos[rows.positions], sin[rows.positions]) for cos, sin in self._rotary]
        for index, layer in enumerate(self._layers):
            qkv = do.product(layer.qkv, do.rms_norm(layer.attention_norm, x)).view(shape)
            q, qk = qkv[:, :queries], qkv[:, :-groups]
            if layer.q_norm is not None and layer.k_norm is not None:
                k = qkv[:, queries:-groups]
                q.copy_(do.rms_norm(layer.q_norm, q))
                k.copy_(do.rms_norm(layer.k_norm, k))
            if layer.table is not None:
                do.apply_rotary(qk, *angles[layer.table])
            attended = rows.attend(index, q, qkv[:, queries:], layer.window, self._scale)
            x = _added(x, attended, layer.out, layer.out_norm, do)
            wide = do.product(layer.gate_up, do.rms_norm(layer.mlp_norm, x))
            x = _added(x, do.glu(wide, self._activation), layer.down, layer.down_norm, do)
        return x


def _added(to: Tensor, x: Tensor, weights: Linear, norm: Norm | None, do: Operations) -> Tensor:
    """Return `to` + norm(x W^T + b), or `to` + x W^T + b if `norm` is None."""
    if norm is None:
        return do.product(weights, x, to)
    return do.rms_norm(norm, do.product(weights, x)).add_(to)


def _rotary_table(sight: Sight, capacity: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary positions, [capacity, 1, dim] each. The first half of
    the sines is negated."""
    assert sight.rotary is not None
    cos, sin = sight.rotary(capacity)
    # rotate_half(x) is x rolled by half, with the first half negated. Here the first half of the
    # sines is negated instead.
    sign = torch.ones_like(sin)
    sign[:, : sin.shape[1] // 2] = -1
    return cos.unsqueeze(1), (sin * sign).unsqueeze(1)


def _padded(head: Tensor, vocab: int) -> Tensor:
    """Return the first `vocab` rows of `head`. On CUDA more rows follow, up to a multiple of 64
    rows, which makes the product faster."""
    if head.device.type != "cuda":
        return head[:vocab]
    rows = -(-vocab // 64) * 64
    if rows <= len(head):  # padding by 0 rows would copy the matrix
        return head[:rows]
    return F.pad(head, (0, 0, 0, rows - len(head)))


class _LayerBuilder:
    """Builds layers one at a time, and removes their weights from the model.

    In this way memory never holds two copies of all weights. Weights of a narrower type are widened
    here.
    """

    def __init__(self, model: Checkpoint, rotary_sights: Sequence[Sight]) -> None:
        """`rotary_sights` are all different `Sight` objects of the layers that have rotary
        positions."""
        self._model = model
        self._rotary_sights = rotary_sights

    def wide(self, weight: Tensor) -> Tensor:
        """Return a weight in the type of the arithmetic."""
        return weight.to(self._model.dtype)

    def norm(self, name: str) -> Norm:
        """Build the norm with the weight called `name`, and remove the weight from the model."""
        model = self._model
        return Norm(self.wide(model.weights.pop(name)), model.eps, raised=model.raised)

    def layer(self, index: int) -> _DecoderLayer:
        """Build the layer with the number `index`, and remove its weights from the model."""
        weights, prefix = self._model.weights, f"model.layers.{index}."
        sight = self._model.sights[index]

        def biased(name: str) -> bool:
            return f"{prefix}{name}.bias" in weights

        def product(*names: str) -> Linear:
            matrices = [weights.pop(f"{prefix}{name}.weight") for name in names]
            # Either all projections of one input have a bias, or none has.
            biases = [weights.pop(f"{prefix}{name}.bias") for name in names if biased(name)]
            bias = self.wide(torch.cat(biases)) if biases else None
            whole = torch.cat(matrices) if len(matrices) > 1 else matrices[0]
            return linear(self.wide(whole), bias)

        def norm(name: str) -> Norm:
            return self.norm(f"{prefix}{name}.weight")

        def norm_if_any(name: str) -> Norm | None:
            return norm(name) if f"{prefix}{name}.weight" in weights else None

        # In models with norms after attention and MLP, `post_attention_layernorm` is the first of
        # these; in others it is the norm before the MLP.
        both = f"{prefix}pre_feedforward_layernorm.weight" in weights
        return _DecoderLayer(
            window=sight.window,
            table=self._rotary_sights.index(sight) if sight in self._rotary_sights else None,
            attention_norm=norm("input_layernorm"),
            qkv=product(*(f"self_attn.{which}_proj" for which in "qkv")),
            q_norm=norm_if_any("self_attn.q_norm"),
            k_norm=norm_if_any("self_attn.k_norm"),
            out=product("self_attn.o_proj"),
            out_norm=norm("post_attention_layernorm") if both else None,
            mlp_norm=norm("pre_feedforward_layernorm" if both else "post_attention_layernorm"),
            gate_up=product("mlp.gate_proj", "mlp.up_proj"),
            down=product("mlp.down_proj"),
            down_norm=norm("post_feedforward_layernorm") if both else None,
        )
