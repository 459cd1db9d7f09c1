"""A draft that was trained for one target, in its files.

The draft's folder holds a card and the weights of one layer, both written by
`models.train.draft`. The embedding and the head are the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from torch import Tensor

from voiceloop.bundled import bundled
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, NORM, Checkpoint, layer_shapes
from voiceloop.llm.model.loading import LoadedModel, family

CARD, WEIGHTS = "draft.json", "draft.safetensors"
FUSE, TOKENS, SCALE = "fuse.weight", "tokens", ".scale"

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

    def weights(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight, by name."""
        hidden, queries, keys = self.hidden, self.heads * self.dim, self.groups * self.dim
        layer = layer_shapes(hidden, self.inner, queries, keys)
        shapes = {f"model.layers.0.{name}": shape for name, shape in layer.items()}
        return {FUSE: (hidden, 2 * hidden), NORM: (hidden,), **shapes}


class DraftCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of draft.json."""

    target: str
    """The name of the target for which the draft was trained, as the user gave it."""
    family: str
    """The `loading.family` of the target. The draft serves all files of this family."""
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
