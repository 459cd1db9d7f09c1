"""Decode several replies at once: each pass gives one token or more to each of them.

The replies are lines through one tree of tokens after the rows of a cache. Each row attends only to
its own line, and lines with the same beginning share its rows. Draft tokens may be added to the
tree before they are verified. A line goes on through a draft token if it chooses the same token.
A line does not know what its tokens mean; `CandidateUtterance` tells when it is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from voiceloop.llm.model.attention import followed
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Penalties, Sampling, exact, warp
from voiceloop.llm.rules.verify import ROOT, Tree, Verifier
from voiceloop.llm.text.output import Output, SpeechOutput

CLAUSE_WORDS = 3
"""Minimum number of words after which a punctuation mark ends the first clause."""
CLAUSE_MOST_WORDS = 8
"""Maximum number of words of a first clause. More words count as a clause even without a
punctuation mark."""
_MARK = re.compile(r"[,;:.!?…。！？，][\"'”’»)\]]*$")  # noqa: RUF001


@dataclass(slots=True)
class ParallelReply:
    """One of several replies: a line through the tree."""

    seed: int
    limit: int
    """Maximum number of tokens."""
    ends: Callable[[int], bool]
    """A function that is called with each token; it returns whether the line ends with that
    token."""
    node: int = ROOT
    """The node of the reply's last token that the target has computed. If there is none yet, the
    node of the last token before the reply."""
    tokens: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    done: bool = False

    def add(self, token: int, logprob: float) -> None:
        """Add a token to the line."""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.done = self.ends(token) or len(self.tokens) == self.limit

    def follows(self, nodes: Nodes) -> bool:
        """Move to the node of the line's last token. Return False if the tree has no such node."""
        child = nodes.child(self.node, self.tokens[-1])
        self.node = self.node if child is None else child
        return child is not None


class Nodes:
    """A tree of tokens after the first `root` rows of a cache. The last nodes of the tree may not
    be in the cache yet."""

    def __init__(self, root: int) -> None:
        self.root = root
        """The number of rows before the tree."""
        self.x = list[int]()
        self.tree = Tree(())
        self.prompt_length = 0
        """Number of nodes at the beginning that belong to the user's text and not to a reply."""

    def add(self, lines: Sequence[ParallelReply]) -> None:
        """Add a node for the last token of each of `lines`, after the line's node, and move the
        line there. Lines with the same node and the same last token share the new node."""
        found = {(line.node, line.tokens[-1]): 0 for line in lines}
        for number, place in enumerate(found):
            found[place] = len(self.x) + number
        for line in lines:
            line.node = found[line.node, line.tokens[-1]]
        self.grow(*zip(*found, strict=True))

    def follow(self, node: int, tokens: Sequence[int]) -> None:
        """Add a chain of `tokens` after `node`."""
        new = range(len(self.x), len(self.x) + len(tokens))
        self.grow([node, *new][: len(tokens)], tokens)

    def grow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Add a node for each of `tokens`. Its parent is the entry of `parents` with the same
        index."""
        self.x, self.tree = [*self.x, *tokens], Tree((*self.tree.parents, *parents))

    def cut(self, length: int) -> None:
        """Keep only the first `length` nodes."""
        self.x, self.tree = self.x[:length], Tree(self.tree.parents[:length])

    def child(self, node: int, token: int) -> int | None:
        """Return the child of `node` that has this token; None if there is none."""
        return next((at for at in self.tree.children(node) if self.x[at] == token), None)

    def compute(self, target: Decoder, cache: KvCache) -> Tensor:
        """Compute the rows of the nodes that the cache lacks; return the logits after them, [new,
        vocab]."""
        new = torch.tensor(self.x[cache.length - self.root :], device=target.device)
        return target.forward_tree(new, cache, self.tree, len(new))


class Chooser:
    """Chooses the tokens of lines. Each line gets the tokens that the conversation would choose
    with the line's seed."""

    def __init__(self, target: Decoder, sampling: Sampling) -> None:
        """`sampling` is the conversation's."""
        self.seed = sampling.seed
        self._sampling = sampling
        self._verifier = Verifier(sampling, target.vocab, target.device)
        self._penalties = Penalties(sampling, target.vocab, target.device)

    def begin(self, turn: int, earlier: Set[int]) -> None:
        """Prepare for lines of the user's `turn`. `earlier` are the tokens of earlier replies and
        of the user's words, for penalties."""
        self._verifier.begin(turn)
        self._penalties.begin(earlier)

    def walk(
        self, lines: Sequence[ParallelReply], nodes: Nodes, logits: Tensor, position: int
    ) -> None:
        """Let each of `lines` choose a token after its node. If the tree already has a node for
        that token, the line moves there and chooses again.

        `logits` [rows, vocab] are those after the last nodes, or those after the token before the
        tree. A line's first token has the index `position` among the turn's tokens. This waits for
        the device.
        """
        first = len(nodes.x) - len(logits)
        scores, logprobs = self._scores(logits, nodes), exact(logits).log_softmax(-1)
        while lines:
            rows = [line.node - first for line in lines]
            places = [position + len(line.tokens) for line in lines]
            chosen = self._verifier.choices(scores[rows], [line.seed for line in lines], places)
            picked = logprobs[rows].gather(1, chosen.unsqueeze(1)).squeeze(1)
            tokens: list[int] = cast(Any, chosen).tolist()
            for line, token, logprob in zip(lines, tokens, cast(Any, picked).tolist(), strict=True):
                line.add(token, logprob)
            lines = [line for line in lines if not line.done and line.follows(nodes)]

    def _scores(self, logits: Tensor, nodes: Nodes) -> Tensor:
        """Return the scores after the last nodes, [rows, vocab]: the `logits` after penalties, bans
        and temperature."""
        replied = slice(nodes.prompt_length, None)
        x = torch.tensor(nodes.x[replied], dtype=torch.long, device=logits.device)
        follows: Tensor | None = None
        if self._penalties.counting:
            follows = followed(nodes.tree, logits.device)[-len(logits) :, replied]
        return warp(self._penalties.apply(logits, x, follows=follows), self._sampling)


class CandidateUtterance:
    """Collects the text of one reply, token by token."""

    def __init__(self, output: Output, eos: frozenset[int], *, clause: bool) -> None:
        """`output` turns the tokens into text; it must not have been used before. `eos` are the
        tokens that end a reply. With `clause`, the candidate is done after its first clause,
        otherwise after the whole reply."""
        self.text = ""
        """The text that would be spoken, as far as it is certain."""
        self.complete = False
        """Whether the reply is over."""
        self._output = output
        self._eos = eos
        self._clause = clause

    def push(self, token: int) -> bool:
        """Add `token`. Return whether the candidate is done: after the first clause or the whole
        reply."""
        if token in self._eos:
            self._add(self._output.finish())
            self.complete = True
            return True
        self._add(self._output.push([token]))
        self.complete = self._output.stopped is not None
        return self.complete or (self._clause and ends_clause(self.text))

    def _add(self, items: Sequence[object]) -> None:
        self.text += "".join(item.text for item in items if isinstance(item, SpeechOutput))


def ends_clause(text: str) -> bool:
    """Tell roughly whether `text`, the beginning of a reply, contains a whole clause.

    Clauses for speech are cut by other code, with more care. Here it is enough that all candidates
    are about equally long, so a mark that does not end a clause does no harm.
    """
    words = len(text.split())
    if words > CLAUSE_MOST_WORDS:  # the last word may not be complete
        return True
    return words >= CLAUSE_WORDS and _MARK.search(text.rstrip()) is not None
