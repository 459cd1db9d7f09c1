"""Models that transformers loads: as many as can be become a `Checkpoint`, the others it runs.

Importing this imports transformers, which takes seconds; so it is imported only where a model needs
it. transformers' changing cache classes are hidden here: its models write into the buffers of a
`KvCache`, or into those at a `Place`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from voiceloop.llm.attention import Place, hidden
from voiceloop.llm.cache import KvCache
from voiceloop.llm.checkpoint import EMBEDDING, HEAD, LEAN, Checkpoint


def checkpoint_of(model: PreTrainedModel, capacity: int) -> Checkpoint | None:
    """The weights of a model of the Llama family, which loses its layers; None for any other.

    `capacity` is the longest sequence: of a window that is no shorter nothing is seen.
    """
    if not _is_lean(model, capacity):
        return None
    body = cast(Any, model).model
    weights = model.state_dict()
    if weights[HEAD].data_ptr() == weights[EMBEDDING].data_ptr():
        del weights[HEAD]
    like = body.norm.weight

    def rotary(positions: int) -> tuple[Tensor, Tensor]:
        places = torch.arange(positions, device=like.device).unsqueeze(0)
        cos, sin = body.rotary_emb(like, places)
        return cos[0], sin[0]

    config, attention = model.config, body.layers[0].self_attn
    # Or both copies of every weight would be held until the last layer is fused.
    for layer in body.layers:
        layer.to("meta")
    return Checkpoint(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        groups=config.num_key_value_heads,
        dim=attention.head_dim,
        eps=config.rms_norm_eps,
        weights=weights,
        dtype=like.dtype,
        rotary=rotary,
    )


def _is_lean(model: PreTrainedModel, capacity: int) -> bool:
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in LEAN
        and config.hidden_act == "silu"
        and _window(config) >= capacity
        # The tables of these two change with the length of the sequence.
        and rope.get("rope_type", "default") not in ("dynamic", "longrope")
        and not getattr(config, "mlp_bias", False)
        and cast(Any, model).model.layers[0].self_attn.o_proj.bias is None
        and _whole(model)
    )


def _whole(model: PreTrainedModel) -> bool:
    """Whether its weights are plain numbers: of what is quantised, the linears are of a class of
    their own making or, as torchao has it, their weights are."""
    linears = [part for part in model.modules() if isinstance(part, nn.Linear)]
    return {type(part) for part in linears} == {nn.Linear} and all(
        type(weight) in (Tensor, nn.Parameter) and type(weight.data) is Tensor
        for weight in model.parameters()
    )


def _kinds(config: Any) -> set[str]:
    """The kinds of layers there are, by what they see."""
    windowed = getattr(config, "sliding_window", None) is not None
    usual = "sliding_attention" if windowed else "full_attention"  # those of Mistral alike
    return {*(getattr(config, "layer_types", None) or (usual,))}


def _window(config: Any) -> float:
    """How many tokens the layer that sees the fewest sees; infinite where all see everything."""
    window = getattr(config, "sliding_window", None)
    return window if window and "sliding_attention" in _kinds(config) else math.inf


class TransformersDecoder:
    """Any causal model whose layers attend to rows of a cache, by transformers' own forward.

    Layers with a sliding window too: their masks are transformers', and hide what lies before it.
    The rows are kept all the same, for a rollback uncovers them.
    """

    def __init__(self, model: PreTrainedModel, vocab: int) -> None:
        self.vocab = vocab
        self.parameters = model.num_parameters()
        self.device, self.dtype = model.device, model.dtype
        self.by_reach = True
        self._model = cast(Any, model.eval())
        config = model.config.get_text_config()
        self._layers: int = config.num_hidden_layers
        self._kinds = _kinds(config)
        self._window = getattr(config, "sliding_window", None)
        self._chunk = getattr(config, "attention_chunk_size", None) or 0
        embedding: Tensor = self._model.get_input_embeddings().weight
        # Of an embedding that is not the head too, only rows are read.
        tied = embedding is self._model.get_output_embeddings().weight
        looked_up = 0 if tied else embedding.nbytes
        self.pass_bytes = sum(weight.nbytes for weight in model.parameters()) - looked_up

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        layers = [_Following(cache, index) for index in range(self._layers)]
        logits = self._pass(ids, layers, keep)
        cache.advance(len(ids))
        return logits

    @torch.inference_mode()
    def forward_at(self, ids: Tensor, place: Place, keep: int) -> Tensor:
        """See `Decoder.forward_at`.

        Positions and masks are worked out here: transformers would ask the cache for its length.
        """
        positions = place.positions(len(ids))
        masks = {kind: self._mask(kind, positions, place.reach) for kind in self._kinds}
        # Where all layers are of a kind, they take the mask itself.
        mask = masks if len(masks) > 1 else next(iter(masks.values()))
        layers = [_Placed(place, positions, index) for index in range(self._layers)]
        options = {"position_ids": positions.unsqueeze(0), "attention_mask": mask}
        return self._pass(ids, layers, keep, **options)

    def _mask(self, kind: str, positions: Tensor, reach: int) -> Tensor:
        """What layers of a kind do not see, [1, 1, rows, reach]."""
        places = torch.arange(reach, device=positions.device)
        window = self._window if kind == "sliding_attention" else None
        mask = hidden(positions, places, window, 1, self._model.dtype)
        if kind == "chunked_attention":
            apart = positions.unsqueeze(1) // self._chunk != places // self._chunk
            mask = mask.masked_fill(apart, -math.inf)
        return mask[None, None]

    def _pass(self, ids: Tensor, layers: Sequence[_Layer], keep: int, **options: Any) -> Tensor:
        output = self._model(
            input_ids=ids.unsqueeze(0),
            past_key_values=Cache(layers=list(layers)),
            use_cache=True,
            logits_to_keep=keep,
            **options,
        )
        return output.logits[0, -keep:, : self.vocab]


class _Layer(CacheLayerMixin):
    """What a layer of a model of transformers takes for its cache."""

    is_sliding = False

    def __init__(self, index: int) -> None:
        super().__init__()
        self._index = index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the buffers are made elsewhere."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        keys, values = self.write(key_states[0].transpose(0, 1), value_states[0].transpose(0, 1))
        return keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0)

    def write(self, keys: Tensor, values: Tensor) -> Sequence[Tensor]:
        """Keep both [rows, heads, dim]; return all that there are, [length, heads, dim]."""
        raise NotImplementedError


class _Following(_Layer):
    """The next rows of a `KvCache`."""

    def __init__(self, cache: KvCache, index: int) -> None:
        super().__init__(index)
        self._cache = cache

    def write(self, keys: Tensor, values: Tensor) -> Sequence[Tensor]:
        return self._cache.extend(self._index, keys, values)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_max_length(self) -> int:
        return self._cache.capacity


class _Placed(_Layer):
    """Rows of a fixed number at a place."""

    def __init__(self, place: Place, positions: Tensor, index: int) -> None:
        super().__init__(index)
        self._place, self._positions = place, positions

    def write(self, keys: Tensor, values: Tensor) -> Sequence[Tensor]:
        buffers = self._place.write(self._index, self._positions, keys, values)
        return [self._place.seen(buffer) for buffer in buffers]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._place.reach, 0

    def get_seq_length(self) -> Any:  # a number on the device, as transformers' own have it
        return self._positions[0]

    def get_max_length(self) -> int:
        return self._place.reach
