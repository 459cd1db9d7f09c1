"""What fits is loaded, and what does not is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.assembly.planning import MARGIN, MemoryPlan
from voiceloop.placement import MemoryPart

pytestmark = pytest.mark.pure

counts = st.integers(0, 10**12)
parts = st.lists(st.builds(MemoryPart, st.sampled_from("abc"), counts)).map(tuple)
plans = st.builds(MemoryPlan, st.just("cpu"), st.none() | counts, parts)


@given(parts, st.none() | st.floats(0.5, 1.5))
def test_nothing_is_refused_that_fits_or_is_not_known(
    wanted: tuple[MemoryPart, ...], share: float | None
) -> None:
    needed = sum(part.bytes for part in wanted)
    plan = MemoryPlan("cpu", None if share is None else int(share * needed), wanted)
    if plan.free is None or plan.needed <= plan.free:
        assert plan.fits
    elif plan.needed > plan.free / (1 - MARGIN) * 1.001 + 1:
        assert not plan.fits


@given(plans, counts)
def test_what_a_process_has_already_need_not_be_free(plan: MemoryPlan, taken: int) -> None:
    already = MemoryPart("program", taken)
    held = MemoryPlan(plan.device, plan.free, (*plan.parts, already), taken)
    assert held.fits == plan.fits
    assert held.needed == plan.needed + taken


def test_it_is_told_in_one_line() -> None:
    found = MemoryPlan(
        "cuda",
        22_100_000_000,
        (
            MemoryPart("target", 14_900_000_000),
            MemoryPart("draft", 1_000_000_000),
            MemoryPart("key-value cache", 568_000_000),
            MemoryPart("voice", 0),
        ),
    )
    assert str(found) == (
        "needs about 16.5 GB on cuda, 22.1 GB free: "
        "target 14.9 GB, draft 1.0 GB, key-value cache 568 MB"
    )
