"""What all records share: how figures are told, and the form in which they are printed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.bench.record import bootstrap, spread

pytestmark = pytest.mark.pure


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=20))
def test_a_spread_is_of_the_values_that_are_there(values: list[float | None]) -> None:
    found = spread(values, (50, 95, 99))
    there = [value for value in values if value is not None]
    assert list(found) == ["p50", "p95", "p99"]
    assert spread(values) == {name: found[name] for name in ("p50", "p95")}
    if not there:
        assert set(found.values()) == {None}
        return
    for name, point in (("p50", 50), ("p95", 95), ("p99", 99)):
        assert found[name] == pytest.approx(float(np.percentile(there, point)), abs=0.006)


changes = st.lists(st.floats(-1e4, 1e4), min_size=5, max_size=20).map(np.array)


@settings(max_examples=25)
@given(changes, st.floats(-1e3, 1e3))
def test_an_interval_holds_a_change_that_all_have(before: np.ndarray, by: float) -> None:
    low, high = bootstrap(before + by - before, np.median, 0.99)
    assert low == pytest.approx(by, abs=1e-6) and high == pytest.approx(by, abs=1e-6)
    assert bootstrap(before, np.median, 0.99) == bootstrap(before, np.median, 0.99)
