"""Models that transformers loads. Models of the Llama family become a `Checkpoint`; transformers
itself runs the others.

Importing this module imports transformers, which takes seconds, so it is imported only for models
that need it. No other module of `llm` sees the cache classes of transformers, which change between
versions. Models write into the buffers of a `KvCache`, or at a `SlotPosition`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from voiceloop.llm.model.attention import FEATURES, Branches, SlotPosition, hidden
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, LEAN, Checkpoint, Rotary, Sight
from voiceloop.llm.model.operations import ACTIVATIONS
from voiceloop.llm.rules.verify import Tree

FULL, SLIDING = "full_attention", "sliding_attention"
"""The names that transformers gives to layers that see all earlier tokens, and to layers that see a
window."""


def checkpoint_of(model: PreTrainedModel) -> Checkpoint | None:
    """Take the weights out of a model of the Llama family; return None for any other model."""
    if not _is_lean(model):
        return None
    body, config = cast(Any, model).model, cast(Any, model.config)
    weights = model.state_dict()
    if weights[HEAD].data_ptr() == weights[EMBEDDING].data_ptr():
        del weights[HEAD]
    sights, dim = _sights(model), body.layers[0].self_attn.head_dim
    scale: float = body.layers[0].self_attn.scaling
    # Otherwise two copies of every weight would be held until the last layer is fused.
    for layer in body.layers:
        layer.to("meta")
    gemma = config.model_type == "gemma3_text"
    return Checkpoint(
        sights=sights,
        heads=config.num_attention_heads,
        groups=config.num_key_value_heads,
        dim=dim,
        eps=config.rms_norm_eps,
        weights=weights,
        dtype=body.norm.weight.dtype,
        activation=_activation(config),
        raised=gemma,
        embedding_scale=body.embed_tokens.scalar_embed_scale if gemma else None,
        attention_scale=None if scale == dim**-0.5 else scale,
    )


def _sights(model: PreTrainedModel) -> tuple[Sight, ...]:
    """Return the sight of each layer of a model of the Llama family."""
    body, config = cast(Any, model).model, cast(Any, model.config)
    like, several = body.norm.weight, config.model_type == "gemma3_text"

    def rotary_of(kind: str) -> Rotary:
        def rotary(positions: int) -> tuple[Tensor, Tensor]:
            places = torch.arange(positions, device=like.device).unsqueeze(0)
            cos, sin = body.rotary_emb(like, places, *((kind,) if several else ()))
            return cos[0], sin[0]

        return rotary

    kinds = {
        kind: Sight(rotary_of(kind), config.sliding_window if kind == SLIDING else None)
        for kind in _kinds(config)
    }
    unplaced = {kind: Sight(None, sight.window) for kind, sight in kinds.items()}
    rotary_layers: list[int] = (
        getattr(config, "no_rope_layers", None) or [1] * config.num_hidden_layers
    )
    layers = getattr(config, "layer_types", None) or [*kinds] * config.num_hidden_layers
    return tuple(
        (kinds if has_rotary else unplaced)[kind]
        for kind, has_rotary in zip(layers, rotary_layers, strict=True)
    )


def _activation(config: Any) -> str:
    return config.hidden_activation if config.model_type == "gemma3_text" else config.hidden_act


def _rope_types(config: Any) -> set[str]:
    """Return the types of rotary positions. There may be one for each kind of layer."""
    parameters: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    ways = [way for way in parameters.values() if isinstance(way, dict)] or [parameters]
    return {cast("dict[str, Any]", way).get("rope_type", "default") for way in ways}


def _is_lean(model: PreTrainedModel) -> bool:
    """Tell whether `LeanDecoder` can run the model."""
    config = cast(Any, model.config)
    if config.model_type not in LEAN or _activation(config) not in ACTIVATIONS:
        return False
    return (
        _kinds(config) <= {SLIDING, FULL}
        # The tables of these two change with the length of the sequence.
        and not {"dynamic", "longrope"} & _rope_types(config)
        and not getattr(config, "mlp_bias", False)
        and not getattr(config, "use_bidirectional_attention", False)
        and getattr(config, "attn_logit_softcapping", None) is None
        and getattr(config, "final_logit_softcapping", None) is None
        and cast(Any, model).model.layers[0].self_attn.o_proj.bias is None
        and _whole(model)
    )


def _whole(model: PreTrainedModel) -> bool:
    """Tell whether all weights are plain numbers. A quantised model has linear layers of another
    class or, with torchao, weights of another class."""
    linears = [part for part in model.modules() if isinstance(part, nn.Linear)]
    return {type(part) for part in linears} == {nn.Linear} and all(
        type(weight) in (Tensor, nn.Parameter) and type(weight.data) is Tensor
        for weight in model.parameters()
    )


def _kinds(config: Any) -> set[str]:
    """Return the kinds of attention that the layers have."""
    windowed = getattr(config, "sliding_window", None) is not None
    usual = SLIDING if windowed else FULL  # Mistral lists no kinds
    return {*(getattr(config, "layer_types", None) or (usual,))}


class TransformersDecoder:
    """Runs any causal model with attention in every layer, through transformers' own forward
    method.

    Layers may have a sliding window. The masks of transformers hide the rows before the window, but
    the cache keeps these rows, because a rollback may uncover them. The public attributes are those
    of the protocol `Decoder`.
    """

    def __init__(
        self, model: PreTrainedModel, vocab: int, chunk: int, *, features: bool = False
    ) -> None:
        """`vocab` is the number of logits that are kept. `chunk` is the maximum number of tokens of
        a prompt in one step. With `features`, caches also keep the inputs of the head."""
        self.vocab = vocab
        self.parameters = model.num_parameters()
        self.device, self.dtype = model.device, model.dtype
        self.attends_bucket = True
        self.chunk = chunk
        self._model = cast(Any, model.eval())
        config = model.config.get_text_config()
        self._layers: int = config.num_hidden_layers
        self._kinds = _kinds(config)
        self._window = getattr(config, "sliding_window", None)
        self._chunk = getattr(config, "attention_chunk_size", None) or 0
        self.embedding: Tensor = self._model.get_input_embeddings().weight.detach()
        # If the head has its own matrix, a pass reads only a few rows of the embedding.
        embedding, head = self._model.get_input_embeddings(), self._model.get_output_embeddings()
        looked_up = 0 if embedding.weight is head.weight else self.embedding.nbytes
        self._found = list[Any]()
        """The outputs of the model's body in the present pass. They hold the inputs of the head."""
        if features:
            body = self._model.base_model
            body.register_forward_hook(lambda _, __, found: self._found.append(found))
        self.pass_bytes = sum(weight.nbytes for weight in model.parameters()) - looked_up

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        return self._followed(ids, cache, keep)

    @torch.inference_mode()
    def forward_tree(self, ids: Tensor, cache: KvCache, tree: Tree, keep: int) -> Tensor:
        branches = Branches(cache.length, len(ids), tree, self.device)
        options = self._seen(branches.positions, branches.places, branches.apart)
        return self._followed(ids, cache, keep, **options)

    def _followed(self, ids: Tensor, cache: KvCache, keep: int, **options: Any) -> Tensor:
        """Run a pass over the next rows of a cache."""
        start, end = cache.length, cache.length + len(ids)
        layers = [
            _HfCacheLayer(partial(cache.extend, index), start, end) for index in range(self._layers)
        ]
        logits = self._pass(ids, layers, keep, **options)
        for features in self._features():
            cache.extend(FEATURES, features)
        cache.advance(len(ids))
        return logits

    @torch.inference_mode()
    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        """Compute `ids` at a fixed place, as `Decoder.forward_at` describes.

        Positions and masks are computed here. transformers would need the length of the cache,
        which only the device knows.
        """
        positions = place.positions(len(ids))
        options = self._seen(positions, torch.arange(place.reach, device=positions.device))
        at = place.rows(positions)

        def write(layer: int, keys: Tensor, values: Tensor) -> list[Tensor]:
            return [place.seen(buffer) for buffer in place.write(layer, at, keys, values)]

        layers = [
            _HfCacheLayer(partial(write, index), positions[0], place.reach)
            for index in range(self._layers)
        ]
        logits = self._pass(ids, layers, keep, **options)
        for features in self._features():
            place.write(FEATURES, at, features)
        return logits

    def _features(self) -> list[Tensor]:
        """Return the inputs of the head in the last pass: one tensor [rows, 1, hidden]. Return an
        empty list if features are not kept."""
        found, self._found = self._found, []
        return [one.last_hidden_state[0].unsqueeze(1) for one in found]

    def _seen(
        self, positions: Tensor, places: Tensor, apart: Tensor | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments of the model for positions and masks. The parameters are
        those of the method `hidden`."""
        masks = {kind: self._mask(kind, positions, places, apart) for kind in self._kinds}
        # If all layers are of one kind, transformers takes their mask, not a dict of masks.
        mask = masks if len(masks) > 1 else next(iter(masks.values()))
        return {"position_ids": positions.unsqueeze(0), "attention_mask": mask}

    def _mask(self, kind: str, positions: Tensor, places: Tensor, apart: Tensor | None) -> Tensor:
        """Return the mask of the layers of one kind, [1, 1, rows, places]."""
        window = self._window if kind == SLIDING else None
        mask = hidden(positions, places, window, 1, self._model.dtype, apart)
        if kind == "chunked_attention":
            beyond = positions.unsqueeze(1) // self._chunk != places // self._chunk
            mask = mask.masked_fill(beyond, -math.inf)
        return mask[None, None]

    def _pass(
        self, ids: Tensor, layers: Sequence[_HfCacheLayer], keep: int, **options: Any
    ) -> Tensor:
        self._found.clear()  # a pass that failed may have left some
        output = self._model(
            input_ids=ids.unsqueeze(0),
            past_key_values=Cache(layers=list(layers)),
            use_cache=True,
            logits_to_keep=keep,
            **options,
        )
        return output.logits[0, -keep:, : self.vocab]


class _HfCacheLayer(CacheLayerMixin):
    """The rows of one layer for one pass, in the form that transformers' models take."""

    is_sliding = False

    def __init__(
        self, write: Callable[[Tensor, Tensor], Sequence[Tensor]], start: int | Tensor, reach: int
    ) -> None:
        """`write` stores keys and values, each [rows, heads, dim], and returns those of all rows
        that the pass attends to. `start` is the position of the first row; it may be on the device.
        The pass attends only to positions below `reach`."""
        super().__init__()
        self._write, self._start, self._reach = write, start, reach
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: a `KvCache` or `Slots` makes the buffers."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        keys, values = self._write(key_states[0].transpose(0, 1), value_states[0].transpose(0, 1))
        return keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        del query_length  # these rows are below `reach`
        return self._reach, 0

    def get_seq_length(self) -> Any:  # transformers' own layers may have it on the device too
        return self._start

    def get_max_length(self) -> int:
        return self._reach
