"""Models that transformers loads: as many as can be become a `Checkpoint`, the others it runs.

Importing this imports transformers, which takes seconds; so it is imported only where a model needs
it. transformers' changing cache classes are hidden here: `TransformersCache` lets its models write
into the buffers of a `KvCache`.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from voiceloop.llm.cache import KvCache
from voiceloop.llm.checkpoint import EMBEDDING, HEAD, Checkpoint

LEAN = ("llama", "qwen2", "qwen3", "mistral")
"""Values of `model_type` that may become a `Checkpoint`."""


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
        # Quantised linears are subclasses with weights of their own making.
        and {type(part) for part in model.modules() if isinstance(part, nn.Linear)} == {nn.Linear}
    )


def _window(config: Any) -> float:
    """How many tokens the layer that sees the fewest sees; infinite where all see everything."""
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]  # those of Mistral alike
    window = getattr(config, "sliding_window", None)
    return window if window and "sliding_attention" in kinds else math.inf


class TransformersDecoder:
    """Any causal model whose layers attend to rows of a cache, by transformers' own forward.

    Layers with a sliding window too: their masks are transformers', and hide what lies before it.
    The rows are kept all the same, for a rollback uncovers them.
    """

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


class TransformersCache(Cache):
    """What a model of transformers takes for its cache, writing into a `KvCache`."""

    def __init__(self, cache: KvCache, layers: int) -> None:
        super().__init__(layers=[_Layer(cache, index) for index in range(layers)])


class _Layer(CacheLayerMixin):
    is_sliding = False

    def __init__(self, cache: KvCache, index: int) -> None:
        super().__init__()
        self._cache = cache
        self._index = index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the `KvCache` makes its own buffers."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        states = (state[0].transpose(0, 1) for state in (key_states, value_states))
        keys, values = self._cache.extend(self._index, *states)
        return keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_max_length(self) -> int:
        return self._cache.capacity
