"""What a conversation's steps gave and took, added up.

This module knows neither models nor clocks: both are in the steps that are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from voiceloop.llm.rules.tree import Tree, chain

NOTHING = chain(0)


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass of the target gave, and what it took to get there."""

    tokens: tuple[int, ...] = ()
    """What was decided: the accepted draft tokens and one more. None where the pass only read, or
    was cut off."""
    tree: Tree = NOTHING
    """Which of the draft tokens that were verified follows which."""
    path: Sequence[int] = ()
    """Those among them that were accepted."""
    start: int = 0
    """Position of the first row that the target computed."""
    rows: int = 0
    """Rows from there on that stay in its cache: those of accepted tokens and what is before."""
    prompt: int = 0
    """Those among them that belong to the prompt."""
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
    """What a conversation has cost so far, in tokens, passes and milliseconds of the models.

    It has many fields because each is a figure of some report.
    """

    drafted: int = 0
    """Draft tokens that were handed to the target."""
    tested: int = 0
    """Places for which the target got to judge draft tokens: all up to the first where none was
    accepted."""
    accepted: int = 0
    accepted_by_position: tuple[int, ...] = ()
    """Accepted draft tokens that were the first of their round, the second, …"""
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
    """Tokens that the target has computed for nothing: rejected draft tokens, and whatever of
    prompts and replies was rolled back."""
    draft_ms: float = 0.0
    """Milliseconds of the draft, prompts included."""
    target_ms: float = 0.0
    """Milliseconds of the target, prompts included."""
    wasted_ms: float = 0.0
    """Milliseconds of both that went into draft tokens that were not accepted, and into what was
    rolled back. A pass takes about as long without its rejected rows: it counts for those that
    stay."""
    dropped_turns: int = 0
    """Exchanges that were forgotten because the context was full."""
    evictions: int = 0
    """Times the caches were given up to another conversation."""


class Stats:
    """Adds up one conversation's steps, and knows what each row of the target's cache has cost."""

    def __init__(self) -> None:
        self.total = LlmCounters()
        """Goes on counting; `counters` gives a copy."""
        self._row_ms: list[float] = []
        """Milliseconds that each row took, its draft token's included."""

    @property
    def counters(self) -> LlmCounters:
        """What there is by now."""
        return replace(self.total)

    def round(self, step: Step) -> None:
        """Add a round, or what came of one that was cut off."""
        self.target_pass(step)
        total, each = self.total, step.draft_ms / max(1, step.tree.depth)
        for row in range(1, step.accepted + 1):
            self._row_ms[-row] += each  # what drafting it took is lost with the row
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
        """Add what the target did in `step`; its rows share the time."""
        self.total.target_passes += bool(step.tokens)
        self.total.prefilled += step.prompt
        self.total.target_ms += step.target_ms
        self._row_ms[step.start :] = [step.target_ms / max(1, step.rows)] * step.rows

    def draft_prefill(self, tokens: int, ms: float) -> None:
        """Add so many prompt tokens of the draft, and what they took."""
        self.total.draft_prefilled += tokens
        self.total.draft_ms += ms

    def chosen(self, start: int, rows: Sequence[int]) -> tuple[int, float]:
        """Of the rows from `start` on keep only `rows`, which count from there; `wasted` does not
        count the others. Returns how many these are, and the milliseconds that they took."""
        took = self._row_ms[start:]
        kept = self._row_ms[start:] = [took[row] for row in rows]
        return len(took) - len(kept), sum(took) - sum(kept)

    def rolled_back(self, length: int, known: int) -> None:
        """Of `known` rows in the target's cache, those from `length` on were for nothing."""
        self.total.wasted += max(0, known - length)
        self.total.wasted_ms += sum(self._row_ms[length:known])
        del self._row_ms[length:]
