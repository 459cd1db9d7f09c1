"""What fits is loaded, what does not is refused, and what is proposed instead fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.memoryplan import MARGIN, MemoryPart, MemoryPlan, PlanChange, total

pytestmark = pytest.mark.pure

counts = st.integers(0, 10**12)
parts = st.lists(st.builds(MemoryPart, st.sampled_from("abc"), counts, st.integers(1, 9))).map(
    tuple
)
plans = st.builds(MemoryPlan, st.just("cpu"), st.none() | counts, parts)


@given(parts, st.none() | st.floats(0.5, 1.5))
def test_nothing_is_refused_that_fits_or_is_not_known(
    wanted: tuple[MemoryPart, ...], share: float | None
) -> None:
    plan = MemoryPlan("cpu", None if share is None else int(share * total(wanted)), wanted)
    if plan.free is None or plan.needed <= plan.free:
        assert plan.fits
    elif plan.needed > plan.free / (1 - MARGIN) * 1.001 + 1:
        assert not plan.fits


@given(plans, st.lists(st.builds(PlanChange, st.text(min_size=1), parts)))
def test_what_is_proposed_is_the_first_that_fits(
    plan: MemoryPlan, changes: list[PlanChange]
) -> None:
    hint = plan.instead(changes)
    free = plan.free
    fitting = [c.hint for c in changes if free is None or total(c.parts) <= free]
    assert hint == (fitting[0] if fitting else "")


@given(plans, st.lists(st.builds(PlanChange, st.text(min_size=1), parts)), counts)
def test_what_a_process_has_already_need_not_be_free(
    plan: MemoryPlan, changes: list[PlanChange], taken: int
) -> None:
    already = MemoryPart("program", taken)
    with_it = [PlanChange(one.hint, (*one.parts, already)) for one in changes]
    held = MemoryPlan(plan.device, plan.free, (*plan.parts, already), taken)
    assert (held.fits, held.instead(with_it)) == (plan.fits, plan.instead(changes))
    assert held.needed == plan.needed + taken


def test_it_is_told_in_one_line() -> None:
    found = MemoryPlan(
        "cuda",
        22_100_000_000,
        (
            MemoryPart("target", 14_900_000_000),
            MemoryPart("draft", 1_000_000_000),
            MemoryPart("key-value cache", 142_000_000, 4),
            MemoryPart("voice", 0),
        ),
    )
    assert str(found) == (
        "needs about 16.5 GB on cuda, 22.1 GB free: "
        "target 14.9 GB, draft 1.0 GB, key-value cache 4 x 142 MB"
    )
