"""Counters of one conversation: the tokens, passes and times of its steps, added up.

This module knows neither models nor clocks: the steps bring their figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from voiceloop.llm.rules.tree import Tree, chain

NOTHING = chain(0)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one pass of the target, with the draft's work for it."""

    tokens: tuple[int, ...] = ()
    """The tokens that were decided: the accepted draft tokens and one more. Empty if the pass only
    read, or was cut off."""
    tree: Tree = NOTHING
    """The tree of the draft tokens that were verified."""
    path: Sequence[int] = ()
    """The nodes of `tree` that were accepted."""
    start: int = 0
    """Position of the first row that the target computed."""
    rows: int = 0
    """Rows from `start` on that stay in the target's cache: accepted tokens and all before them."""
    prompt: int = 0
    """The number of these `rows` that belong to the prompt."""
    draft_ms: float = 0.0
    target_ms: float = 0.0
    facts: Mapping[str, float] = field(default_factory=dict[str, float])
    """Further figures for the trace, by name."""

    @property
    def drafted(self) -> int:
        """Draft tokens that were verified."""
        return len(self.tree)

    @property
    def accepted(self) -> int:
        """Draft tokens that were accepted."""
        return len(self.path)


@dataclass(slots=True)
class LlmCounters:
    """The cost of a conversation so far, in tokens, passes and milliseconds of the models.

    It has many fields because each is a figure of some report.
    """

    drafted: int = 0
    """Draft tokens that were handed to the target."""
    tested: int = 0
    """Positions at which the target judged draft tokens. A round ends at the first position at
    which none is accepted; this position is counted too."""
    accepted: int = 0
    accepted_by_position: tuple[int, ...] = ()
    """How many accepted draft tokens were the first of their round, the second, and so on."""
    target_passes: int = 0
    """Passes of the target that gave tokens: one for each prompt and one for each round."""
    prefilled: int = 0
    """Prompt tokens that the target has computed."""
    draft_prefilled: int = 0
    """Prompt tokens that the draft has computed."""
    reused: int = 0
    """Prompt tokens that were in the target's cache when a reply began."""
    carried: int = 0
    """Reply tokens that were kept when the prompt changed."""
    wasted: int = 0
    """Tokens that the target computed for nothing: rejected draft tokens, and parts of prompts and
    replies that were rolled back."""
    draft_ms: float = 0.0
    """Milliseconds of the draft, prompts included."""
    target_ms: float = 0.0
    """Milliseconds of the target, prompts included."""
    wasted_ms: float = 0.0
    """Milliseconds of the draft for rejected tokens, and of both models for tokens that were rolled
    back later. Rejected tokens cost the target nothing: its pass takes about as long without
    them."""
    dropped_turns: int = 0
    """Exchanges that were forgotten because the context was full."""
    evictions: int = 0
    """How often the caches were given up to another conversation."""


class Stats:
    """Adds up one conversation's steps, and keeps the time of each row in the target's cache."""

    def __init__(self) -> None:
        self.total = LlmCounters()
        """The counters themselves; `counters` is a copy of them."""
        self._row_ms: list[float] = []
        """Milliseconds that each row took, with the drafting of its token."""

    @property
    def counters(self) -> LlmCounters:
        """A copy of the counters."""
        return replace(self.total)

    def round(self, step: Step) -> None:
        """Add a round, or the part of a round that was done before it was cut off."""
        self.target_pass(step)
        total, each = self.total, step.draft_ms / max(1, step.tree.depth)
        for row in range(1, step.accepted + 1):
            self._row_ms[-row] += each  # if the row is rolled back, this time is wasted too
        total.drafted += step.drafted
        total.tested += min(step.accepted + 1, step.tree.depth)
        total.accepted += step.accepted
        total.draft_ms += step.draft_ms
        total.wasted_ms += step.draft_ms - step.accepted * each
        by_position = total.accepted_by_position
        by_position += (0,) * (step.accepted - len(by_position))
        total.accepted_by_position = tuple(
            count + (position < step.accepted) for position, count in enumerate(by_position)
        )

    def target_pass(self, step: Step) -> None:
        """Add the target's part of `step`. Its rows share the time evenly."""
        self.total.target_passes += bool(step.tokens)
        self.total.prefilled += step.prompt
        self.total.target_ms += step.target_ms
        self._row_ms[step.start :] = [step.target_ms / max(1, step.rows)] * step.rows

    def draft_prefill(self, tokens: int, ms: float) -> None:
        """Add `tokens` prompt tokens that the draft has computed in `ms`."""
        self.total.draft_prefilled += tokens
        self.total.draft_ms += ms

    def chosen(self, start: int, rows: Sequence[int]) -> tuple[int, float]:
        """Keep the rows before `start`, and of the others only those at the offsets `rows` from
        `start`. Return the number of rows that are removed, and the milliseconds that they took,
        which are not added to `total`."""
        took = self._row_ms[start:]
        kept = self._row_ms[start:] = [took[row] for row in rows]
        return len(took) - len(kept), sum(took) - sum(kept)

    def rolled_back(self, length: int, known: int) -> None:
        """Count as wasted the rows from `length` on, of the `known` rows in the target's cache."""
        self.total.wasted += max(0, known - length)
        self.total.wasted_ms += sum(self._row_ms[length:known])
        del self._row_ms[length:]
