"""Drafts by models with another tokenizer than the target's (universal assisted decoding).

If most of the draft's tokens are also tokens of the target, the draft chooses only among these
common tokens. It draws them from its own distribution with the target's noise (the method TLI in
Timor et al. 2025, arXiv 2502.05202). If fewer tokens are common, the draft writes a text, and the
target's tokenizer splits this text into draft tokens.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.draft.drafts import ChainDraft
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.llm.rules import draftpolicy
from voiceloop.llm.rules.sampling import Penalties, Sampling
from voiceloop.llm.rules.verify import DraftTokens, Tree
from voiceloop.llm.text.template import special_tokens
from voiceloop.llm.text.translation import Translation

MOST = 0.5
"""`SharedDraft` is used if at least this share of the draft's tokens are also tokens of the
target."""


ROOM = 64
"""The number of rows of a draft's cache that are kept free for draft tokens."""


class _TranslationReader:
    """Translates the target's sequence into the draft's tokens, and reads these into the draft's
    cache."""

    def __init__(self, model: Decoder, cache: KvCache, translation: Translation) -> None:
        self.cache, self.translation, self.length = cache, translation, 0
        self._model = model
        self._fed: list[int] = []
        """The tokens of the rows in the cache. Tokens that the cache lacks may follow."""

    def unseen(self, ids: Sequence[int]) -> list[int]:
        """Roll the cache back to the tokens that it has in common with the translation of `ids`.
        Return the other tokens of the translation, at least one. If the translation is too long for
        the cache, return an empty list."""
        own = self.translation.translate(ids)
        if len(own) > self.cache.capacity - ROOM:
            return []
        most = min(self.cache.length, len(self._fed), len(own) - 1)
        same = next((i for i in range(most) if self._fed[i] != own[i]), max(0, most))
        self.cache.rollback(same)
        self._fed = own
        return own[same:]

    def read(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of the translation of `ids`. Computes nothing if the translation is too
        long for the cache."""
        if self.unseen(ids):
            yield from feed(self._model, self.cache, self._fed)
        self.length = len(ids)

    def last(self, ids: Sequence[int]) -> Generator[None, None, list[int]]:
        """Return the tokens that the next pass has to read. If they are too many for one pass, read
        all except the last one here, and return the last one."""
        own = self.unseen(ids)
        if len(own) > self._model.chunk:
            yield from feed(self._model, self.cache, self._fed[:-1])
            yield None
            own = own[-1:]
        self.length = len(ids)
        return own

    def chose(self, token: int) -> None:
        """Append `token` to the translation. The draft chose this token and will read it next."""
        self._fed.append(token)

    def rollback(self, length: int) -> None:
        """Cut the target's sequence back to `length`. The next `unseen` cuts the cache."""
        self.translation.rollback(length)
        self.length = min(self.length, length)

    def release(self) -> None:
        """Forget everything."""
        self.translation.rollback(0)
        self.cache.release()
        self.length, self._fed = 0, []


class _Translated:
    """The base class of drafts that read a translation of the target's sequence."""

    # `length` counts no token of the last proposal, because it is not known here which of them were
    # accepted.
    lag = draftpolicy.MOST + 1

    def __init__(self, reader: _TranslationReader) -> None:
        self._reader = reader

    @property
    def length(self) -> int:
        return self._reader.length

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        yield from self._reader.read(ids)

    def rollback(self, length: int) -> None:
        self._reader.rollback(length)

    def release(self) -> None:
        self._reader.release()

    @property
    def caches(self) -> tuple[KvCache, ...]:
        return (self._reader.cache,)


class SharedDraft(_Translated, ChainDraft):
    """Drafts only tokens that the draft model has in common with the target."""

    def __init__(
        self,
        model: Decoder,
        translation: Translation,
        same: Mapping[int, int],
        vocab: int,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """`same` maps the draft's ids of common tokens to the target's ids. `vocab` is the size of
        the target's vocabulary. `capacity` is the maximum length of a sequence in the draft's
        tokens. `ends` are the target's tokens that end a reply."""
        ChainDraft.__init__(self, model.device, sampling, capacity, ends)
        _Translated.__init__(self, _TranslationReader(model, self.cache, translation))
        self._model, self._vocab = model, vocab
        own, target = zip(*sorted(same.items()), strict=True)
        self._own = torch.tensor(own, device=model.device)
        self._target = torch.tensor(target, device=model.device)
        self._meant = torch.zeros(vocab, dtype=torch.long, device=model.device)
        self._meant[self._target] = self._own
        self._first = True

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        self._first = True
        own = yield from self._reader.last(ids)
        return torch.tensor(own, device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        if not self._first:  # `unseen` is the target's id of the token that this draft chose
            unseen = self._meant[unseen]
            self._reader.chose(int(unseen))
        self._first = False
        logits = self._model.forward(unseen, self.cache, 1)
        every = logits.new_full((1, self._vocab), -torch.inf)
        return every.index_copy_(1, self._target, logits.index_select(1, self._own))


class TextDraft(_Translated):
    """Drafts the likeliest text of the draft model, tokenised for the target."""

    draws = False

    def __init__(
        self, model: Decoder, translation: Translation, target: object, own: object, capacity: int
    ) -> None:
        """`target` and `own` are the tokenizers of the target and of the draft. `capacity` is the
        maximum length of a sequence in the draft's tokens."""
        self.cache = KvCache(capacity)
        super().__init__(_TranslationReader(model, self.cache, translation))
        self._model, self._translation, self._tokenizer = model, translation, own
        specials = {text: index for index, text in special_tokens(target).items()}
        self._special = {index: specials.get(text) for index, text in special_tokens(own).items()}
        """The target's id of each special token of the draft; None if the target lacks that
        token."""

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose the target's tokens of the likeliest text. Propose nothing if the sequence ends
        within a character. `noise` is not used: it belongs to the target's vocabulary, and the
        draft has another."""
        own, k = (yield from self._reader.last(ids)), tree.depth
        unseen, guess, x = torch.tensor(own, device=self._model.device), list[int](), list[int]()
        while own and self._translation.certain and len(guess) < 2 * k and len(x) <= k:
            if guess:
                yield None
            logits = self._model.forward(unseen, self.cache, 1)
            unseen = logits.argmax(-1)
            token = int(unseen)
            if token in self._special:
                meant = self._special[token]
                x += [] if meant is None else [meant]
                break
            guess.append(token)
            self._reader.chose(token)
            x = self._tokens(guess)
        return DraftTokens(torch.tensor(x[:k], dtype=torch.long, device=self._model.device))

    def _tokens(self, guess: list[int]) -> list[int]:
        """Return the target's tokens for `guess`, without a last character that is incomplete."""
        context = self._translation.word
        text = self._decoded(context, guess)
        return self._translation.back(text.rstrip("\ufffd"))

    def _decoded(self, context: list[int], guess: list[int]) -> str:
        """Return the text of `guess` after the tokens `context`. They decide whether the text
        begins with a space."""
        decode = self._tokenizer.decode  # pyright: ignore[reportAttributeAccessIssue]
        before = decode(context, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        whole = decode(
            context + guess, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return whole[len(before) :]
