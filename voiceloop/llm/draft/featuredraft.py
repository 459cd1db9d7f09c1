"""A draft that was trained for one target. It is one layer over the target's features.

A feature is the input of the target's head. The draft's folder holds a card and the layer's
weights, both written by `models.train.draft`. The embedding and the head are the target's. For
each token the layer takes the token's embedding and the feature before the token, and computes the
feature after the token (EAGLE: Li et al. 2024, arXiv 2401.15077). While the layer drafts, it uses
its own features at positions where the target has not computed any yet. Rows that depend on its own
features are computed again later.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import torch
import torch.nn.functional as F
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from torch import Tensor

from voiceloop.bundled import bundled
from voiceloop.engines import Steps
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.draft.drafts import TreeDraft
from voiceloop.llm.model.attention import FEATURES, Branching, Following
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, NORM, Checkpoint, Sight, rotary_table
from voiceloop.llm.model.decoder import LeanDecoder, TargetDecoder, chunk
from voiceloop.llm.model.fingerprint import family
from voiceloop.llm.model.llamacpp import GgufModel
from voiceloop.llm.model.loading import LoadedModel
from voiceloop.llm.model.plain import linear
from voiceloop.llm.rules import draftpolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.verify import Tree

CARD, WEIGHTS = "draft.json", "draft.safetensors"
FUSE, TOKENS, SCALE = "fuse.weight", "tokens", ".scale"
_LAYER = "model.layers.0."

Size = Annotated[int, Meta(ge=1, le=2**20)]


class DraftShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of the layer."""

    hidden: Size
    """Size of a feature, and of an embedding."""
    heads: Size
    groups: Size
    dim: Annotated[int, Meta(ge=2, le=1024, multiple_of=2)]
    """Size of a head."""
    inner: Size
    """Width of the MLP."""
    eps: float = 1e-6
    theta: float = 10_000.0
    """The base of the rotary positions."""

    def weights(self) -> dict[str, tuple[int, int] | tuple[int]]:
        """Return the shape of every weight, by name."""
        hidden, inner = self.hidden, self.inner
        queries, keys = self.heads * self.dim, self.groups * self.dim
        return {
            FUSE: (hidden, 2 * hidden),
            f"{_LAYER}input_layernorm.weight": (hidden,),
            f"{_LAYER}self_attn.q_proj.weight": (queries, hidden),
            f"{_LAYER}self_attn.k_proj.weight": (keys, hidden),
            f"{_LAYER}self_attn.v_proj.weight": (keys, hidden),
            f"{_LAYER}self_attn.o_proj.weight": (hidden, queries),
            f"{_LAYER}post_attention_layernorm.weight": (hidden,),
            f"{_LAYER}mlp.gate_proj.weight": (inner, hidden),
            f"{_LAYER}mlp.up_proj.weight": (inner, hidden),
            f"{_LAYER}mlp.down_proj.weight": (hidden, inner),
            NORM: (hidden,),
        }


class DraftCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of draft.json."""

    target: str
    """The name of the target for which the draft was trained, as the user gave it."""
    family: str
    """The `fingerprint.family` of the target. The draft serves all files of this family."""
    shape: DraftShape
    minutes: float = 0.0
    """The duration of the training, in minutes."""
    accepted: tuple[float, ...] = ()
    """Acceptance on held-out replies. The first number is the share of first draft tokens that were
    right. Each further number is the share of right draft tokens at the next place, given that all
    before were right."""
    kind: str = "feature"
    version: int = 1


@dataclass(frozen=True, slots=True)
class LoadedHead:
    """A trained draft, loaded from its files."""

    name: str
    card: DraftCard
    weights: dict[str, Tensor]
    tokens: Tensor
    """The target's tokens that the draft chooses from, int64 [tokens]."""

    @property
    def parameters(self) -> int:
        """The number of weights that take part in computing a draft token."""
        own = sum(weight.numel() for weight in self.weights.values())
        return own + len(self.tokens) * self.card.shape.hidden


def is_head(folder: Path) -> bool:
    """Tell whether `folder` holds a trained draft, i.e. has a card."""
    return (folder / CARD).is_file()


def load_head(name: str, folder: Path, device: torch.device) -> LoadedHead:
    """Load the draft called `name` from `folder`. Raises ModelCorrupt."""
    try:
        card = msgspec.json.decode((folder / CARD).read_bytes(), type=DraftCard)
        with safe_open(folder / WEIGHTS, framework="pt", device=str(device)) as opened:
            weights = {name: opened.get_tensor(name) for name in opened.keys()}
        tokens, weights = weights.pop(TOKENS).long(), unrounded(weights)
        found = {name: tuple(weight.shape) for name, weight in weights.items()}
        if found != card.shape.weights() or tokens.dim() != 1 or not len(tokens):
            raise ValueError("its weights are not those of its card")
    except (
        *(OSError, ValueError, KeyError, RuntimeError),
        *(SafetensorError, msgspec.DecodeError),
    ) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelCorrupt(
            f"the draft '{name}' is damaged: {reason}", "copy it again, or train another"
        ) from error
    return LoadedHead(name, card, weights, tokens)


def unrounded(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Turn int8 matrices back into q · scale, with one scale for each row, and keep other weights.
    Raises KeyError for a matrix without scales."""
    return {
        name: weight * stored[name + SCALE] if weight.dtype == torch.int8 else weight
        for name, weight in stored.items()
        if not name.endswith(SCALE)
    }


def shipped_head(family: str, device: torch.device) -> LoadedHead | None:
    """Load the draft that ships for targets of `family`; None if there is none."""
    for path in sorted(bundled("models/drafts").glob(f"*/{CARD}")):
        if msgspec.json.decode(path.read_bytes(), type=DraftCard).family == family:
            return load_head(path.parent.name, path.parent, device)
    return None


def check_head(head: LoadedHead, target: LoadedModel, vocab: int) -> None:
    """Raise EngineError if the draft does not fit `target`: if it was trained for another family of
    models, or has a token id that is not below `vocab`."""
    if head.card.family != family(target) or int(head.tokens.max()) >= vocab:
        raise EngineError(
            f"the draft '{head.name}' was trained for {head.card.target}, "
            f"which is another model than '{target.name}'",
            "train one with python -m models.train.draft, or set llm.draft to auto",
        )


def head_rows(target: LoadedModel, tokens: Tensor) -> Tensor:
    """Return the rows of the target's head for `tokens`, [tokens, hidden]. Call this before a
    decoder takes the weights. Raises EngineError if a GGUF file lacks the head."""
    if isinstance(target.model, Checkpoint):
        weights = target.model.weights
        return weights.get(HEAD, weights[EMBEDDING])[tokens]
    if isinstance(target.model, GgufModel):
        return target.model.head[tokens]
    embeddings: torch.nn.Linear = target.model.get_output_embeddings()  # pyright: ignore[reportAssignmentType]
    return embeddings.weight.detach()[tokens]


class FeatureModel:
    """The draft's layer with its target's embedding and head."""

    def __init__(
        self, head: LoadedHead, rows: Tensor, target: TargetDecoder, capacity: int
    ) -> None:
        """`rows` are from `head_rows`; `target` is the target's decoder. `capacity` is the maximum
        length of a sequence in tokens."""
        shape, dtype = head.card.shape, target.dtype
        weights = {name: weight.to(dtype) for name, weight in head.weights.items()}
        self._fuse = linear(weights.pop(FUSE))
        self.embedding = target.embedding

        def rotary(positions: int) -> tuple[Tensor, Tensor]:
            return rotary_table(positions, shape.dim, shape.theta, dtype, target.device)

        checkpoint = Checkpoint(
            sights=(Sight(rotary),),
            heads=shape.heads,
            groups=shape.groups,
            dim=shape.dim,
            eps=shape.eps,
            # The layer is given embedded tokens, so it needs no embeddings of its own.
            weights=weights | {EMBEDDING: rows[:1].to(dtype), HEAD: rows.to(dtype)},
            dtype=dtype,
        )
        self._layer = LeanDecoder(checkpoint, len(rows), capacity)
        self.tokens = head.tokens.to(target.device)
        self.vocab = target.vocab
        self.device = target.device
        self.hidden = shape.hidden
        self.dtype = dtype
        self.parameters = head.parameters
        self.pass_bytes = self._fuse.nbytes + self._layer.pass_bytes
        """The bytes of large matrices that a pass reads."""

    @torch.inference_mode()
    def forward(
        self,
        ids: Tensor,
        features: Tensor,
        cache: KvCache,
        tree: Tree | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute `ids` [rows] after the rows of `cache`. `features` [rows, hidden] has for each id
        the feature before it.

        Returns the logits after the last id, [1, vocab], and the feature after the last id, [1,
        hidden]. Logits are -inf for tokens that the draft never chooses. If `tree` is given, the
        ids are its last nodes, and the results have one row for each id.
        """
        x = self._fuse(torch.cat((self.embedding[ids], features), -1))
        if tree is None:
            found = self._layer.through(x, Following(cache, len(ids)))[-1:]
        else:
            found = self._layer.through(x, Branching(cache, len(ids), tree, self.device))
        cache.advance(len(ids))
        feature = self._layer.normed(found)
        logits = self._layer.head(feature)
        every = logits.new_full((len(logits), self.vocab), -torch.inf)
        return every.index_copy_(1, self.tokens, logits), feature


class DraftLayer(Protocol):
    """A layer that predicts the next token from a token and the target's feature before it."""

    parameters: int
    device: torch.device

    def forward(
        self, ids: Tensor, features: Tensor, cache: KvCache, tree: Tree | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute `ids` like `FeatureModel.forward`."""
        ...


class FeatureDraft(TreeDraft):
    """A draft by a layer that was trained for the target."""

    # The rows of the last proposal have the layer's own features. They are computed again with the
    # target's features.
    lag = draftpolicy.MOST + 1

    def __init__(
        self,
        model: DraftLayer,
        features: KvCache,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """`features` is the target's cache of the conversation; it must keep features. The other
        arguments are those of `ChainDraft`."""
        super().__init__(model.device, sampling, capacity, ends)
        self._layer, self._features = model, features
        self._sure = 0
        """The number of rows that were computed with the target's features."""
        self._last: Tensor | None = None
        """The features that the last pass computed; None if the next row takes a feature of the
        target."""

    @property
    def length(self) -> int:
        return self._sure

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Read `ids` in order. Stop before an id if the feature before this id is not yet in the
        target's cache."""
        self.rollback(self._sure)
        end, most = min(len(ids), self._features.length + 1), chunk(self._device)
        while self._sure < end:
            piece = ids[self._sure : min(end, self._sure + most)]
            self._fed(torch.tensor(piece, device=self._device))
            yield None

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on, and all rows with the layer's own features."""
        self._sure = min(self._sure, length)
        self._last = None
        super().rollback(self._sure)

    def release(self) -> None:
        super().release()
        self._sure, self._last = 0, None

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        yield from ()
        self.rollback(len(ids) - 1)
        return torch.tensor(ids[self._sure :], device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        if self._last is None:
            logits, self._last = self._fed(unseen)
        else:
            logits, self._last = self._layer.forward(unseen, self._last, self.cache)
        return logits

    def _branch(self, tokens: Tensor, tree: Tree, after: Sequence[int]) -> Tensor:
        assert self._last is not None, "the first level stands on the target's feature"
        features = self._last[list(after)]
        logits, self._last = self._layer.forward(tokens, features, self.cache, tree)
        return logits

    def _fed(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Compute `ids` with the target's features. Return the logits and the feature after the
        last id."""
        start = self.cache.length
        (rows,) = self._features.written(FEATURES)
        before = rows[max(0, start - 1) : start + len(ids) - 1, 0]
        if start == 0:  # no feature is before the first token
            before = F.pad(before, (0, 0, 1, 0))
        found = self._layer.forward(ids, before, self.cache)
        self._sure = self.cache.length
        return found
