"""Speculative decoding: a draft proposes a few tokens, one pass of the target verifies them all.

`Speculator.round` is Algorithm 1 of Leviathan et al. 2023 (arXiv 2211.17192):

    propose   x_1, …, x_k from the draft, one pass each
    verify    p_1, …, p_k+1 from the target, all in one pass
    settle    x_1, …, x_n are accepted, a token of the target's own follows, the rest is forgotten

What is proposed may also be a tree: several tokens for one place, of which one path is accepted.

The lines of it that accept are `verify.rejection`; `verify.coupled`, which stands there by default,
accepts by another rule with the same law. What a round has cost is in `stats`. What tokens mean,
which turns they belong to and when a reply is over, this module does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.decode.captured import Captured, Rounds
from voiceloop.llm.draft.drafts import Draft
from voiceloop.llm.model.attention import followed
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CHUNK, Decoder, feed
from voiceloop.llm.model.stopwatch import Stopwatch
from voiceloop.llm.parallel.candidates import BestOf, Candidates, Followed, Guess
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Penalties, Sampling
from voiceloop.llm.rules.stats import Stats, Step
from voiceloop.llm.rules.tree import Tree, chain
from voiceloop.llm.rules.verify import DraftTokens, Verifier

CARRIED = CHUNK // 2
"""Tokens of an earlier reply that fit into one pass together with the end of any prompt."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass of the target is to compute for one conversation, and what it is to decide.

    The pass needs the first four, and may serve the plans of several conversations at once;
    `Speculator.settle` needs the rest, and the logits. Good until the conversation's next plan.
    """

    tokens: Tensor
    """A row for each: what the target has not seen of the ids, then the draft tokens; int64."""
    start: int
    """Position of the first row."""
    slot: KvCache
    """Where the rows go; it holds all that are before them."""
    keep: int
    """Logits are wanted after so many of the rows, the last ones."""
    x: DraftTokens
    noise: Tensor | None
    """Gumbel noise for the tokens that are decided, see `Verifier.noise`."""
    position: int
    """Which of the turn's tokens is decided first."""
    watched: int | None
    """None, or after how many ids the first of the logits are, which tell `Speculator.ending`."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """Where a reply begins."""

    start: int = 0
    """In the ids: the length of its prompt."""
    first: int = 0
    """Among the turn's tokens: how many were decided before."""
    avoided: int | None = None
    """The token that it may not begin with."""

    def position(self, length: int) -> int:
        """Which of the turn's tokens comes after so many ids."""
        return self.first + length - self.start


@dataclass(frozen=True, slots=True)
class _Watches:
    """How long each model takes."""

    draft: Stopwatch
    target: Stopwatch


class Speculator:
    """Both models' caches over one sequence of ids, which the caller owns and passes in.

    The caches always hold rows of a beginning of that sequence; whoever cuts or changes the
    sequence calls `rollback` first. All generators here pause between passes of a model and may be
    closed at any pause, which leaves the caches as they have to be for the sequence that was
    passed in.

    A reply depends on seed, turn and prompt alone; in rejection sampling also on the draft and on
    the numbers of draft tokens, so that it repeats only where those are fixed. This is up to
    rounding: where two tokens score as alike as that, the number of rows in a pass may decide
    between them.
    """

    def __init__(
        self,
        target: Decoder,
        draft: Draft | None,
        policy: DraftPolicy,
        sampling: Sampling,
        cache: KvCache,
        stopwatch: Callable[[torch.device], Stopwatch] = Stopwatch,
        captured: Captured | None = None,
        ends: Sequence[int] = (),
    ) -> None:
        """`cache` is the target's, empty; `policy` may be that of other conversations, too.
        `ends` are the tokens whose probability `ending` tells.

        Rounds are those that are `captured`, for as long as there is a slot for the conversation.
        """
        self.cache = cache
        self.stats = Stats()
        self._target, self._draft, self._policy = target, draft, policy
        self._penalties = Penalties(sampling, target.vocab, target.device)
        self._verifier = Verifier(sampling, target.vocab, target.device, remembered=CARRIED)
        self._rounds = captured and Rounds(
            captured, self.cache, draft, self._verifier, self._penalties
        )
        self._reply = _Reply()
        self._ends = list(ends)
        self._ending: tuple[int, float] | None = None
        """After how many ids one of them comes next, and how likely."""
        self._watches = _Watches(stopwatch(target.device), stopwatch(target.device))

    @cached_property
    def _rows(self) -> Tensor:
        """What the target is fed in a pass. It is made when a step first wants it, on the model's
        own thread and stream; conversations are begun on another."""
        return torch.empty(self.cache.capacity, dtype=torch.long, device=self._target.device)

    @torch.inference_mode()
    def round(self, ids: Sequence[int], limit: int) -> Generator[None, None, Step]:
        """Continue the reply that `revise` began by at least one token and at most `limit`.

        `ids` ends with the reply's last token, which is all that the target has not seen yet.
        """
        position = self._reply.position(len(ids))
        tree = chain(0) if self._draft is None else self._policy.next(position).cut(limit - 1)
        if (rounds := self._rounds) is not None and rounds.ready(ids):
            steps = self._replayed(rounds, ids, len(tree), position)
        else:
            steps = self._round(ids, tree, position)
        step = Step(start=self.cache.length)  # all there is if this is closed at a pause, or fails
        try:
            step = yield from steps
        finally:
            self.rollback(len(ids) + step.accepted)
            draft_ms, target_ms = self._watches.draft.take(), self._watches.target.take()
            step = replace(step, draft_ms=draft_ms, target_ms=target_ms)
            self.stats.round(step)
        self._policy.observe(step.tree, step.path, step.draft_ms, step.target_ms)
        return step

    def _round(self, ids: Sequence[int], tree: Tree, position: int) -> Generator[None, None, Step]:
        """The algorithm. Names are those of Leviathan et al. 2023, but that x may be a tree.

        The reply's token number `position` follows the ids.
        """
        x, noise = DraftTokens(self._rows[:0]), None
        # Propose: x_1, …, x_k from the draft, one pass each.
        if (draft := self._draft) is not None and tree:
            if draft.draws:
                noise = self._verifier.noise(position, tree.depth + 1, drafting=True)
            x = yield from self._proposed(draft, ids, tree, noise)
            if len(x):
                yield None
        # Verify: p_1, …, p_k+1 from the target, all in one pass.
        plan = self.plan(ids, x, noise)
        with self._watches.target:
            logits = self._logits(plan)
            # Settle, by `verify.rejection`, which is the rest of Algorithm 1, or by `coupled`:
            # x_1, …, x_n are accepted, and a token of the target's own follows.
            return self.settle(plan, logits)

    def _proposed(
        self, draft: Draft, ids: Sequence[int], tree: Tree, noise: Tensor | None
    ) -> Generator[None, None, DraftTokens]:
        """What the draft proposes to follow `ids`, see `Draft.propose`."""
        yield from self._catch_up(draft, ids)
        self._penalties.count(ids, self._reply.start)
        proposal = draft.propose(ids, tree, noise, self._penalties)
        return (yield from self._watches.draft.steps(proposal))

    def _catch_up(self, draft: Draft, ids: Sequence[int]) -> Steps[None]:
        """Have the draft read what rounds without draft tokens have left it."""
        if draft.length < len(ids) - draft.lag:
            yield from self.prefill_draft(ids[:-1])

    def _guess(self, ids: Sequence[int], limit: int) -> Generator[None, None, Guess]:
        """The same for several replies at once, all of which begin with `ids`, as it is for the
        first of them: at most `limit` tokens in a chain. Waits for the device."""
        position, start, draft = self._reply.position(len(ids)), self._reply.start, self._draft
        depth = 0 if draft is None else self._policy.next(position).cut(limit).depth
        if draft is None or depth == 0:
            return [], 0.0
        noise = self._verifier.noise(position, depth, drafting=True) if draft.draws else None
        x = yield from self._proposed(draft, ids, chain(depth), noise)
        tokens: list[int] = cast(Any, x.tokens).tolist()
        draft.rollback(len(ids))
        self._penalties.rollback(start)
        self._penalties.count(ids[:start], start)
        return tokens, self._watches.draft.take()

    def _replayed(
        self, rounds: Rounds, ids: Sequence[int], k: int, position: int
    ) -> Generator[None, None, Step]:
        """The same, by what was captured: what is asked for at once cannot be paused within."""
        if k > 0 and self._draft is not None:
            yield from self._catch_up(self._draft, ids)
        k = yield from rounds.begin(ids, k, self._reply.start, position)
        with self._watches.draft:
            rounds.draft(k)
        with self._watches.target:
            rounds.verify(k)
        n, tokens = rounds.settle()
        self._forget(len(ids) + n)
        return Step(tuple(tokens), chain(k), range(n), start=len(ids) - 1, rows=n + 1)

    @torch.inference_mode()
    def plan(
        self,
        ids: Sequence[int],
        x: DraftTokens,
        noise: Tensor | None = None,
        watched: int | None = None,
    ) -> Plan:
        """The pass over what the target has not seen of `ids`, and over the draft tokens `x`.

        `noise` is what the draft was given to choose them with, if any. Logits after the first
        `watched` ids are wanted too, if these end among the rows.
        """
        start, position = self.cache.length, self._reply.position(len(ids))
        unseen = torch.tensor(ids[start:])
        tokens = self._rows[: len(unseen) + len(x)]
        tokens[: len(unseen)] = unseen
        tokens[len(unseen) :] = x.tokens
        self._penalties.count(ids, self._reply.start)
        if noise is None:
            noise = self._verifier.noise(position, x.tree.depth + 1)
        if watched is not None and not start < watched <= len(ids):
            watched = None
        keep = len(x) + 1 if watched is None else len(x) + 1 + len(ids) - watched
        return Plan(tokens, start, self.cache, keep, x, noise, position, watched)

    @torch.inference_mode()
    def settle(self, plan: Plan, logits: Tensor) -> Step:
        """Decide by the logits that the planned pass gave, [plan.keep, vocab].

        The target's cache is left without the rows of rejected tokens.
        """
        x, known = plan.x, plan.start + len(plan.tokens) - len(plan.x)
        follows = None if x.branches is None else followed(x.branches, logits.device)
        scores = self._penalties.apply(logits[-len(x) - 1 :], x.tokens, follows=follows)
        if self._reply.avoided is not None and known == self._reply.start:
            scores[0, self._reply.avoided] = -torch.inf
        path, tokens = self._verifier.verify(scores, x, plan.noise, plan.position)
        if plan.watched is not None:
            self._watch(plan.watched, logits[0])
        end = known + len(path)
        self.stats.rolled_back(end, self.cache.length)
        self.cache.keep(known, path)
        return Step(
            tokens=tuple(tokens),
            tree=x.tree,
            path=path,
            start=plan.start,
            rows=end - plan.start,
            prompt=max(0, self._reply.start - plan.start),
        )

    @torch.inference_mode()
    def revise(
        self,
        ids: Sequence[int],
        old: Sequence[int],
        turn: int,
        position: int,
        watched: int | None = None,
        earlier: Set[int] = frozenset(),
        avoided: int | None = None,
    ) -> Generator[None, None, Step]:
        """Begin a reply to the prompt `ids`, keeping what still fits of `old`, an earlier reply.

        The target verifies the old reply as if it had just been drafted: in one pass where it fits
        into a chunk, else in several up to the first token that is rejected. Without one, the
        target's first token comes straight from the prefill. The tokens are numbers `position`,
        `position + 1`, … of the turn's; after them there has to be room for one more. The step's
        rows and time are those of the last pass.

        In coupled verification the result is what starting over gives. In rejection sampling it
        has the same distribution: each old token is verified against the distribution that it was
        drawn from, and only the first `CARRIED` of the turn are. `old` then has to be all that was
        decided, the token that ended the reply included; to leave one out for what it is would be
        a bias.

        `ending` is told after the first `watched` ids too, unless they were known before.
        `earlier` replies of the conversation and what this one answers consist of these tokens.
        `avoided` is no token to begin with.
        """
        offered = self._begin(ids, old, turn, position, earlier, avoided)
        whole, kept, done, step = [*ids, *old], 0, False, Step()
        try:
            self._forget(len(ids) - 1)  # the last row's logits are needed
            # What is left of the prompt goes into one pass with what is offered.
            most = self._target.chunk
            room = max(1, most - min(len(offered), CARRIED))
            yield from self._extend(ids[: max(0, len(ids) - room)])
            while not done:
                known = whole[: len(ids) + kept]
                x = offered[kept : kept + most - (len(known) - self.cache.length)]
                plan = self.plan(known, x, watched=watched)
                with self._watches.target:
                    logits = self._logits(plan)
                    step = self.settle(plan, logits)
                step = replace(step, target_ms=self._watches.target.take())
                self.stats.target_pass(step)
                kept += step.accepted
                done = step.accepted < len(x) or kept == len(offered)
                if not done:
                    self._forget(len(ids) + kept - 1)
                    yield None
        finally:
            if not done:
                self.rollback(len(ids))  # nobody learns of what was accepted so far
        self.stats.total.carried += kept
        tokens = (*old[:kept], step.tokens[-1])
        return replace(step, tokens=tokens, tree=chain(len(offered)), path=range(kept))

    @torch.inference_mode()
    def begin_best(
        self,
        ids: Sequence[int],
        how: BestOf,
        follow: Callable[[], Followed],
        turn: int,
        position: int,
        limit: int,
        watched: int | None = None,
        earlier: Set[int] = frozenset(),
    ) -> Generator[None, None, Step]:
        """Begin a reply to the prompt `ids` by the best of several, see `Candidates.decode`.

        The rest is as `revise` has it, but that nothing is kept of an earlier reply: behind another
        prompt another candidate may be the best, and all of them are needed to tell.
        """
        x, done = self._begin(ids, (), turn, position, earlier), False
        try:
            self._forget(len(ids) - 1)  # the last row's logits are needed
            yield from self._extend(ids[: max(0, len(ids) - self._target.chunk)])
            plan = self.plan(ids, x, watched=watched)
            with self._watches.target:
                logits = self._logits(plan)
                if plan.watched is not None:
                    self._watch(plan.watched, logits[0])
            rows, ms = len(plan.tokens), self._watches.target.take()
            self.stats.target_pass(Step(start=plan.start, rows=rows, prompt=rows, target_ms=ms))
            self.stats.total.target_passes += 1  # the first tokens come of it
            target, watch = self._target, self._watches.target
            candidates = Candidates(
                target, self.cache, self._verifier, self._penalties, self.stats, watch
            )
            step = yield from candidates.decode(
                *(logits[-1:], position, limit, how, follow),
                lambda said: self._guess([*ids, *said], limit - len(said) - 1),
            )
            done = True
        finally:
            if not done:
                self.rollback(len(ids))
        if self._draft is not None:
            self._draft.rollback(len(ids))  # what it has seen may be another candidate's
        return step

    @torch.inference_mode()
    def offer(self, ids: Sequence[int], guess: Sequence[int]) -> Step:
        """Continue the reply by as much of `guess` as stands, and one token of the target's own.

        Like a round, but for draft tokens that somebody else has, and in one step. In rejection
        sampling they must not depend on the numbers by which they are verified.
        """
        x = DraftTokens(torch.tensor(guess, dtype=torch.long, device=self._target.device))
        plan = self.plan(ids, x)
        with self._watches.target:
            step = self.settle(plan, self._logits(plan))
        step = replace(step, target_ms=self._watches.target.take())
        self.stats.target_pass(step)
        return step

    @torch.inference_mode()
    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Compute both models' rows for all of `ids`."""
        yield from self._extend(ids)
        yield from self.prefill_draft(ids)

    @torch.inference_mode()
    def prefill_draft(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the draft's rows for all of `ids`."""
        draft, watch = self._draft, self._watches.draft
        if draft is None or draft.length >= len(ids):
            return
        before = draft.length
        try:
            yield from watch.steps(draft.prefill(ids))
        finally:
            self.stats.draft_prefill(draft.length - before, watch.take())
        yield None

    def ending(self, length: int) -> float | None:
        """Probability that one of the `ends` follows the first `length` ids; None unless these were
        just computed."""
        return self._ending[1] if self._ending is not None and self._ending[0] == length else None

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        self._forget(length)
        self._penalties.rollback(length)
        if self._rounds is not None:
            self._rounds.rollback(length)
        if self._draft is not None:
            self._draft.rollback(length)
        if self._ending is not None and self._ending[0] > length:
            self._ending = None

    def release(self) -> None:
        """Free both caches."""
        self.cache.release()
        self._verifier.forget()
        if self._draft is not None:
            self._draft.release()
        self._ending = None

    @property
    def seed(self) -> int | None:
        """Seed of the tokens that are drawn; None for greedy decoding, which draws none."""
        sampling = self._verifier.sampling
        return sampling.seed if sampling.temperature else None

    def _begin(
        self,
        ids: Sequence[int],
        old: Sequence[int],
        turn: int,
        position: int,
        earlier: Set[int],
        avoided: int | None = None,
    ) -> DraftTokens:
        """A reply to the prompt `ids` begins; what can be verified of the `old` one."""
        self.stats.total.reused += min(self.cache.length, len(ids))
        self._reply = _Reply(len(ids), position, avoided)
        self._penalties.begin(earlier)
        return self._verifier.begin(turn, old, position)

    def _extend(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the target's rows for all of `ids`, and pause if there was anything to do."""
        start, watch = self.cache.length, self._watches.target
        if start >= len(ids):
            return
        try:
            logits = yield from watch.steps(feed(self._target, self.cache, ids))
        finally:
            rows = self.cache.length - start
            self.stats.target_pass(
                Step(start=start, rows=rows, prompt=rows, target_ms=watch.take())
            )
        assert logits is not None
        self._watch(len(ids), logits[-1])
        yield None

    def _logits(self, plan: Plan) -> Tensor:
        """The pass that is planned."""
        if (tree := plan.x.branches) is None:
            return self._target.forward(plan.tokens, plan.slot, plan.keep)
        return self._target.forward_tree(plan.tokens, plan.slot, tree, plan.keep)

    def _watch(self, length: int, logits: Tensor) -> None:
        """Know what `ending` tells: now, because it takes a wait for the device, and whoever asks
        is on another thread."""
        if self._ends:
            self._ending = length, float(logits.float().softmax(-1)[self._ends].sum())

    def _forget(self, length: int) -> None:
        """Roll the target's cache back."""
        self.stats.rolled_back(length, self.cache.length)
        self.cache.rollback(length)
