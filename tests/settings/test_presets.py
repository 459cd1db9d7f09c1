"""The table of presets: it has each of them, and a machine gets what it carries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.settings.presets import BEST_FIRST, GB, PRESETS, STARTER, Machine

pytestmark = pytest.mark.pure


def machine(cores: int = 8, memory: float | None = 16, gpu: float = 0) -> Machine:
    """One with so many cores, and so many gigabytes."""
    found: Callable[[], int] = lambda: round(gpu * GB)  # noqa: E731
    return Machine(cores, None if memory is None else round(memory * GB), found)


def test_every_preset_is_in_the_table_once_and_the_starter_is_the_last() -> None:
    assert sorted(one.name for one in BEST_FIRST) == sorted(PRESETS)
    assert not PRESETS[STARTER.name] and STARTER.needs == "any machine"
    assert all(one.good_for and "\n" not in one.good_for for one in BEST_FIRST)


def test_each_says_what_it_needs() -> None:
    told = {one.name: one.needs for one in BEST_FIRST}
    assert told["best"] == "a GPU of 24 GB"
    assert told["mini"] == "2 cores and 2 GB of memory"


machines = st.builds(machine, st.integers(1, 64), st.none() | st.floats(0.5, 512), st.floats(0, 96))
ORDER = [one.name for one in BEST_FIRST]


@given(machines, st.none() | st.sampled_from(ORDER))
def test_what_suits_is_the_best_that_runs_well_and_is_small_enough(
    own: Machine, below: str | None
) -> None:
    found, first = own.suggested(below), ORDER.index(below) + 1 if below else 0
    assert found in own.recommended()
    assert ORDER.index(found.name) >= first or below == STARTER.name
    better = BEST_FIRST[first : ORDER.index(found.name)]
    assert not any(one in own.recommended() for one in better)


@pytest.mark.parametrize(
    ("own", "preset"),
    [
        (machine(1, 30), "starter"),
        (machine(2, 1), "starter"),
        (machine(2, None), "laptop"),
        (machine(2, 2), "mini"),
        (machine(2, 3), "cpu"),
        (machine(2, 4), "laptop"),
        (machine(6, 8), "desktop"),
        (machine(8, 16, 8.3), "small"),
        (machine(8, 16, 25.3), "best"),
    ],
)
def test_machines_that_people_have(own: Machine, preset: str) -> None:
    assert own.suggested().name == preset


def test_a_gpu_is_looked_for_only_where_a_preset_wants_one() -> None:
    looked = list[None]()
    own = Machine(4, 16 * GB, lambda: looked.append(None) or 0)
    assert all(own.carries(one) for one in BEST_FIRST if not one.gpu_gb)
    assert looked == []
    assert not any(own.carries(one) for one in BEST_FIRST if one.gpu_gb)
