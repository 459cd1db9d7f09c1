"""Generates the replies from which a draft for a GGUF file learns. llama.cpp computes one dialogue
after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from voiceloop.drafting.replies import LONGEST, Generator, Replies
from voiceloop.llm.gguf.file import ROWS, GgufModel
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.template import ChatTemplate


class GgufGenerator(Generator):
    """Generates the replies of a GGUF file."""

    def __init__(
        self,
        model: GgufModel,
        template: ChatTemplate,
        eos: frozenset[int],
        system: str,
        sampling: Sampling,
        vocab: int,
    ) -> None:
        """Take what `Generator` takes, and the model. The system prompt is read at once."""
        super().__init__(template, eos, system, sampling, vocab, torch.device("cpu"))
        self._decoder = LlamaDecoder(model, vocab, features=True)
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
                ended = ids[-1] in self._eos
        return Replies(
            ids=torch.tensor(ids),
            features=cache.written(FEATURES)[0][: len(ids), 0].half(),
            chosen=torch.tensor(chosen),
            lengths=torch.tensor([len(ids)]),
        )
