"""How well a score tells two kinds apart, against its definition."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conversations.scores import roc_auc

pytestmark = pytest.mark.pure

scores = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=8)


@given(scores, scores)
def test_the_area_is_the_share_of_pairs_in_the_right_order(
    positive: list[float], negative: list[float]
) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p, n in product(positive, negative)]
    assert roc_auc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))
