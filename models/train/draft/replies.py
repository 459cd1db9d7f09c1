"""Generates the replies from which a draft learns, in batches. The target writes them, and each
token is stored with its feature.

A batch is one growing block of tokens with a row for each dialogue. Rows of shorter dialogues have
holes. The KV cache stays between turns, so a second turn computes only its own tokens. The passes
that choose tokens also give the features. Each finished batch is one file. It is written completely
or not at all. The replies of a GGUF file are computed by llama.cpp, one dialogue after the other.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import Cache, DynamicLayer, PreTrainedModel

from voiceloop.llm.gguf.file import ROWS, GgufModel
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.rules.sampling import Sampling, warp
from voiceloop.llm.text.template import ChatTemplate

LONGEST = 64
"""Maximum number of tokens in a reply."""
ENOUGH = 0.85
"""When this share of a batch's replies has ended, the other replies are cut short."""


@dataclass(frozen=True, slots=True)
class Replies:
    """The tokens of all dialogues of one batch, one dialogue after the other."""

    ids: Tensor
    """All tokens, int64 [tokens]."""
    features: Tensor
    """Input of the target's head after each token, [tokens, hidden]."""
    chosen: Tensor
    """Whether the target chose each token, bool [tokens]."""
    lengths: Tensor
    """Number of tokens in each dialogue, int64 [dialogues]."""

    def save(self, path: Path) -> None:
        """Write the replies to the file `path`, completely or not at all."""
        part = path.with_suffix(".part")
        tensors = {name: getattr(self, name).contiguous() for name in self.__slots__}
        save_file(tensors, part)
        os.replace(part, path)


def load_replies(path: Path) -> Replies | None:
    """Read a file that `save` wrote. Return None for a file that is missing, damaged or of another
    kind."""
    try:
        found = load_file(path)
        return Replies(**found)
    except (OSError, SafetensorError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """How the target is asked, and how it replies."""

    template: ChatTemplate
    eos: frozenset[int]
    """The tokens that end a reply."""
    system: str
    sampling: Sampling
    """Of the penalties only the repetition penalty is applied."""
    vocab: int
    """The number of tokens in the vocabulary."""


class Generator(ABC):
    """Generates the target's replies to dialogues."""

    def __init__(self, settings: ReplySettings, device: torch.device) -> None:
        self._settings, self._device = settings, device
        self._opening = settings.template.opening(settings.system)

    @abstractmethod
    def replies(self, said: Sequence[Sequence[str]], seed: int) -> Replies:
        """Return the replies to dialogues. `said` holds the user's turns of each dialogue. `seed`
        determines the noise of the sampling."""

    def _between(self, text: str, turn: int, ended: bool) -> list[int]:
        """Return the tokens between the previous reply and the next one, with the user's `text`. If
        `ended`, the model ended the previous reply itself, and the token that ends it is left
        out."""
        template = self._settings.template
        before = template.reply_to_user if turn else []
        return [*before[ended:], *template.content(text), *template.user_to_reply]

    def _choose(self, logits: Tensor, said: Tensor, noise: torch.Generator) -> Tensor:
        """Choose the next token of each row. `said` [rows, tokens] holds the tokens of the replies
        so far. In a row whose reply has ended, the later tokens are meaningless."""
        sampling = self._settings.sampling
        penalty = sampling.repetition_penalty
        if penalty != 1:
            found = logits.gather(1, said)
            logits.scatter_(1, said, torch.where(found > 0, found / penalty, found * penalty))
        scores = warp(logits, sampling)
        if sampling.temperature == 0:
            return scores.argmax(-1)
        uniform = torch.rand(scores.shape, generator=noise, device=self._device)
        return (scores - (-uniform.clamp_min(1e-20).log()).log()).argmax(-1)


class BlockGenerator(Generator):
    """Generates the replies of a model of transformers, to many dialogues at once."""

    def __init__(self, model: PreTrainedModel, settings: ReplySettings) -> None:
        super().__init__(settings, model.device)
        self._model, self._head = (
            cast(Any, model).base_model,
            cast(Any, model.get_output_embeddings()),
        )

    @torch.inference_mode()
    def replies(self, said: Sequence[Sequence[str]], seed: int) -> Replies:
        block = _Block(self._model, len(said), self._device)
        block.open(self._opening)
        noise = torch.Generator(self._device).manual_seed(seed)
        ended = [False] * len(said)
        for turn in range(max(map(len, said))):
            prompts = [
                self._between(turns[turn], turn, end) if turn < len(turns) else []
                for turns, end in zip(said, ended, strict=True)
            ]
            features = block.feed(prompts)
            ended = self._reply(block, features, [bool(ids) for ids in prompts], noise)
        return block.replies()

    def _reply(
        self, block: _Block, features: Tensor, prompted: list[bool], noise: torch.Generator
    ) -> list[bool]:
        """Generate a reply in each row where `prompted` is True. Return for each row whether the
        model ended the reply itself."""
        begun = going = torch.tensor(prompted, device=self._device)
        start = block.ids.shape[1]
        ends = torch.tensor(sorted(self._settings.eos), device=self._device)
        for _ in range(LONGEST):
            logits = self._head(features)[:, : self._settings.vocab].float()
            chosen = self._choose(logits, block.ids[:, start:], noise)
            features = block.add(chosen, going)
            going = going & ~torch.isin(chosen, ends)
            if int(going.sum()) <= (1 - ENOUGH) * int(begun.sum()):
                break
        return (begun & ~going).tolist()


class _Growing(DynamicLayer):
    """A layer of the KV cache with spare room. Most new tokens fit without a copy of all earlier
    ones."""

    ROOM = LONGEST
    """The number of spare token positions in a new buffer."""

    def __init__(self) -> None:
        super().__init__()
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values, and return all of them, as `DynamicLayer.update` does."""
        begun = self.get_seq_length()
        end = begun + key_states.shape[-2]
        if self._buffers is None or not _holds(self._buffers[0], len(key_states), end):
            shape = *key_states.shape[:-2], end + self.ROOM, key_states.shape[-1]
            keys, values = key_states.new_empty(shape), value_states.new_empty(shape)
            if self.keys is not None and self.values is not None:
                keys[..., :begun, :], values[..., :begun, :] = self.keys, self.values
            self._buffers = keys, values
        keys, values = self._buffers
        keys[..., begun:end, :], values[..., begun:end, :] = key_states, value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        self.is_initialized = True
        return self.keys, self.values


def _holds(buffer: Tensor, sequences: int, rows: int) -> bool:
    return len(buffer) == sequences and buffer.shape[-2] >= rows


class _Block:
    """A growing block of tokens, [rows, tokens], with holes. It also holds the KV cache and the
    features of its tokens."""

    def __init__(self, model: Any, rows: int, device: torch.device) -> None:
        self._model, self._rows, self._device = model, rows, device
        self._cache = Cache(layer_class_to_replicate=_Growing)
        self.ids = torch.empty(rows, 0, dtype=torch.long, device=device)
        self.mask = torch.empty(rows, 0, dtype=torch.long, device=device)
        self._chosen = list[Tensor]()
        self._features = list[Tensor]()

    def open(self, ids: list[int]) -> None:
        """Begin all rows with `ids`. Their pass is computed once for all rows."""
        if not ids:
            return
        found = self._model(
            input_ids=torch.tensor([ids], device=self._device),
            past_key_values=self._cache,
            use_cache=True,
        )
        self._cache.batch_repeat_interleave(self._rows)
        begun = torch.tensor([ids], device=self._device).expand(self._rows, -1)
        self._keep(begun, torch.ones_like(begun), chosen=False)
        self._features.append(found.last_hidden_state.expand(self._rows, -1, -1).half().cpu())

    def feed(self, texts: list[list[int]]) -> Tensor:
        """Append the tokens of a text to each row. Shorter texts get holes before them. Return the
        features after the last token, [rows, hidden]."""
        longest = max(map(len, texts))
        ids = torch.tensor([[0] * (longest - len(text)) + text for text in texts])
        mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts])
        return self._pass(ids.to(self._device), mask.to(self._device), chosen=False)

    def add(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """Append one token or one hole to each row. Rows with True in `rows`, bool [rows], get
        their entry of `tokens` [rows]; the target chose these tokens. All other rows get a hole.
        Return the features after the new tokens, [rows, hidden]."""
        return self._pass(tokens.unsqueeze(1), rows.long().unsqueeze(1), chosen=True)

    def _pass(self, ids: Tensor, mask: Tensor, *, chosen: bool) -> Tensor:
        self._keep(ids, mask, chosen=chosen)
        positions = (self.mask.cumsum(1) - 1).clamp_min(0)[:, -ids.shape[1] :]
        found = self._model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
        ).last_hidden_state
        self._features.append(found.half().cpu())
        return found[:, -1]

    def _keep(self, ids: Tensor, mask: Tensor, *, chosen: bool) -> None:
        self.ids = torch.cat((self.ids, ids), 1)
        self.mask = torch.cat((self.mask, mask), 1)
        self._chosen.append(torch.full_like(ids, chosen, dtype=torch.bool))

    def replies(self) -> Replies:
        """Return the tokens of all rows without the holes."""
        there = self.mask.bool().cpu()
        return Replies(
            ids=self.ids.cpu()[there],
            features=torch.cat(self._features, 1)[there],
            chosen=torch.cat(self._chosen, 1).cpu()[there],
            lengths=there.sum(1),
        )


class GgufGenerator(Generator):
    """Generates the replies of a GGUF file."""

    def __init__(self, model: GgufModel, settings: ReplySettings) -> None:
        """Prepare the model. The system prompt is read at once."""
        super().__init__(settings, torch.device("cpu"))
        self._decoder = LlamaDecoder(model, settings.vocab, features=True)
        self._opened = KvCache(max(1, len(self._opening)))
        self._read(self._opened, self._opening)

    @torch.inference_mode()
    def replies(self, said: Sequence[Sequence[str]], seed: int) -> Replies:
        noise = torch.Generator().manual_seed(seed)
        every = [self._dialogue(turns, noise) for turns in said]
        return Replies(
            ids=torch.cat([one.ids for one in every]),
            features=torch.cat([one.features for one in every]),
            chosen=torch.cat([one.chosen for one in every]),
            lengths=torch.cat([one.lengths for one in every]),
        )

    def _read(self, cache: KvCache, ids: Sequence[int]) -> Tensor:
        """Compute the rows of `ids` that `cache` lacks. Return the logits after the last one."""
        logits = torch.empty(0)
        for begin in range(cache.length, len(ids), ROWS):
            piece = torch.tensor(ids[begin : begin + ROWS])
            logits = self._decoder.forward(piece, cache, 1)
        return logits

    def _dialogue(self, turns: Sequence[str], noise: torch.Generator) -> Replies:
        """Return the only dialogue whose user's turns are `turns`."""
        ids = list(self._opening)
        asked = [len(self._between(text, turn, False)) for turn, text in enumerate(turns)]
        cache = KvCache(len(ids) + sum(asked) + LONGEST * len(turns))
        cache.fork(self._opened, len(ids))
        chosen, ended = [False] * len(ids), False
        for turn, text in enumerate(turns):
            prompt = self._between(text, turn, ended)
            ids += prompt
            chosen += [False] * len(prompt)
            logits = self._read(cache, ids)
            ended, begin = False, len(ids)
            while not ended and len(ids) - begin < LONGEST:
                said = torch.tensor([ids[begin:]], dtype=torch.long)
                token = self._choose(logits, said, noise)
                logits = self._decoder.forward(token, cache, 1)
                ids.append(int(token))
                chosen.append(True)
                ended = ids[-1] in self._settings.eos
        return Replies(
            ids=torch.tensor(ids),
            features=cache.written(FEATURES)[0][: len(ids), 0].half(),
            chosen=torch.tensor(chosen),
            lengths=torch.tensor([len(ids)]),
        )
