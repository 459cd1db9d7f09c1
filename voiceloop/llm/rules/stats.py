"""Add up the tokens, passes and times of one conversation's steps.

This module knows no models and no clock: the steps contain the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from voiceloop.llm.rules.verify import Tree, chain

NOTHING = chain(0)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one pass of the target, together with the draft's work for that pass."""

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
    """Number of rows from `start` on that stay in the target's cache: those of the accepted draft
    tokens and of all tokens before them."""
    prompt: int = 0
    """The number of the `rows` that belong to the prompt."""
    draft_ms: float = 0.0
    target_ms: float = 0.0
    facts: Mapping[str, float] = field(default_factory=dict[str, float])
    """Further numbers for the trace, by name."""

    @property
    def drafted(self) -> int:
        """The number of draft tokens that were verified."""
        return len(self.tree)

    @property
    def accepted(self) -> int:
        """The number of draft tokens that were accepted."""
        return len(self.path)


@dataclass(slots=True)
class LlmCounters:
    """The cost of a conversation so far, in tokens, passes and milliseconds of the models.

    The class has many fields because each of them is shown in some report.
    """

    drafted: int = 0
    """Draft tokens that the target was given to verify."""
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
    """Milliseconds of the draft, including the time for prompts."""
    target_ms: float = 0.0
    """Milliseconds of the target, including the time for prompts."""
    wasted_ms: float = 0.0
    """Milliseconds of the draft for rejected tokens, and of both models for tokens that were rolled
    back later. The target's time for rejected tokens is not counted: its pass takes about as long
    without them."""
    dropped_turns: int = 0
    """Exchanges that were forgotten because the context was full."""
    evictions: int = 0
    """How often the memory of the caches was taken for another conversation."""
    without_slot: int = 0
    """Rounds that were not captured because no slot was free for the conversation."""


class Stats:
    """Adds up one conversation's steps, and keeps the time of each row in the target's cache."""

    def __init__(self) -> None:
        self.total = LlmCounters()
        """The counters, which change with each step. `counters` is a copy."""
        self._row_ms: list[float] = []
        """Milliseconds that each row in the target's cache took, including the drafting of its
        token."""

    @property
    def counters(self) -> LlmCounters:
        """A copy of the counters."""
        return replace(self.total)

    def round(self, step: Step) -> None:
        """Add the step of a round. If the round was closed early, the step contains the part that
        was done."""
        self.target_pass(step)
        total, each = self.total, step.draft_ms / max(1, step.tree.depth)
        for row in range(1, step.accepted + 1):
            self._row_ms[-row] += each  # counts as wasted if the row is rolled back later
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
        """Add the target's part of `step`. Each row gets an equal share of the target's time."""
        self.total.target_passes += bool(step.tokens)
        self.total.prefilled += step.prompt
        self.total.target_ms += step.target_ms
        self._row_ms[step.start :] = [step.target_ms / max(1, step.rows)] * step.rows

    def copied(self, rows: int) -> None:
        """Note that the first `rows` rows were copied, which takes no time."""
        self._row_ms = [0.0] * rows

    def draft_prefill(self, tokens: int, ms: float) -> None:
        """Add `tokens` prompt tokens that the draft has computed in `ms`."""
        self.total.draft_prefilled += tokens
        self.total.draft_ms += ms

    def chosen(self, start: int, rows: Sequence[int]) -> tuple[int, float]:
        """Keep the times of the rows before `start`, and of the rows at the offsets `rows` from
        `start`. Remove the times of all others.

        Return the number of removed rows and the milliseconds that they took. These are not added
        to `total`.
        """
        took = self._row_ms[start:]
        kept = self._row_ms[start:] = [took[row] for row in rows]
        return len(took) - len(kept), sum(took) - sum(kept)

    def rolled_back(self, length: int, known: int) -> None:
        """Count the rows from `length` on as wasted, with their times. The target's cache has
        `known` rows."""
        self.total.wasted += max(0, known - length)
        self.total.wasted_ms += sum(self._row_ms[length:known])
        del self._row_ms[length:]
