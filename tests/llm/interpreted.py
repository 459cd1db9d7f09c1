"""What is fused gives what torch's own operations give. To be run with TRITON_INTERPRET=1, which
Triton has to find when it is imported: `test_fused` does.
"""

from __future__ import annotations

import pytest
import torch

from voiceloop.llm.model.attention import hidden, masked
from voiceloop.llm.model.fused import Fused, attended
from voiceloop.llm.model.operations import ACTIVATIONS, PLAIN, Norm, Whole

pytestmark = pytest.mark.models


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("window", "scale"), [(None, None), (40, None), (3, None), (None, 0.5)])
@pytest.mark.parametrize(("start", "rows"), [(0, 1), (0, 5), (130, 1), (131, 9), (17, 3)])
@pytest.mark.parametrize(("heads", "groups", "dim"), [(4, 2, 16), (6, 1, 24), (16, 1, 32)])
def test_fused_attention_is_attention_by_masks(heads, groups, dim, start, rows, window, scale):
    capacity = 160
    qkv = drawn(rows, heads + 2 * groups, dim)
    q, buffer = qkv[:, :heads], drawn(3, capacity, 2 * groups, dim, seed=1)
    buffer[:, start + rows :] = torch.nan  # nobody looks there
    slot, begun = torch.tensor([[1], [start]])
    found = attended(q, buffer, slot, begun, window, scale)
    places = torch.arange(start + rows)
    mask = hidden(places[start:], places, window, heads // groups, q.dtype)
    expected = masked(q, buffer[1, : start + rows], mask, scale)
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 9, 16, 17])
@pytest.mark.parametrize(("size", "columns"), [(24, 5), (200, 70), (1500, 33)])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("as_on_a_gpu", [False, True])
def test_fused_products_are_products(rows, size, columns, biased, added, as_on_a_gpu):
    """Those of more rows than are few are torch's."""
    bias = drawn(columns, seed=1) if biased else None
    weights = Whole(drawn(columns, size) / size**0.5, bias)
    if as_on_a_gpu:
        weights.weight = weights.weight.t().contiguous().t()
    to = drawn(rows, columns, seed=2) if added else None
    x = drawn(rows + 1, size + 8, seed=3)[1:, :size]
    found = Fused().product(weights, x, to)
    assert torch.allclose(found, PLAIN.product(weights, x, to), atol=1e-5)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("size", [48, 200, 1024])
def test_fused_norms_are_norms(rows, size):
    whole = drawn(rows, 5, size)
    own, norm = Fused(), Norm(drawn(size, seed=1), 1e-5)
    assert torch.allclose(
        own.rms_norm(norm, whole[:, 0].contiguous()), norm(whole[:, 0]), atol=1e-5
    )
    heads = whole[:, 1:4]
    assert torch.allclose(own.rms_norm(norm, heads), norm(heads), atol=1e-5)


@pytest.mark.parametrize(("heads", "dim"), [(1, 16), (5, 24), (12, 64)])
def test_fused_rotation_is_rotation_and_leaves_other_heads_alone(heads, dim):
    whole, angles = drawn(3, heads + 2, dim), drawn(2, 3, 1, dim, seed=1)
    expected = whole.clone()
    PLAIN.apply_rotary(expected[:, :heads], *angles)
    Fused().apply_rotary(whole[:, :heads], *angles)
    assert torch.allclose(whole, expected, atol=1e-5)
    assert torch.equal(whole[:, heads:], expected[:, heads:])


@pytest.mark.filterwarnings("ignore:overflow")  # which is 0 in the end
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("size", [7, 1024, 1500])
def test_fused_gates_are_gates(size, activation):
    x = 3 * drawn(2, 2 * size)
    expected = PLAIN.glu(x.clone(), activation)
    assert torch.allclose(Fused().glu(x, activation), expected, atol=1e-5)
