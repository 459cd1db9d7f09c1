"""Whatever form weights are kept in, a product is torch's own up to rounding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from voiceloop.llm.model import kernels
from voiceloop.llm.model.kernels import ROUNDED
from voiceloop.llm.model.operations import ACTIVATIONS, LARGE, Linear, Norm, Operations, linear

pytestmark = pytest.mark.models
few = settings(max_examples=20)
halves = pytest.mark.skipif(
    torch.backends.quantized.engine not in ("x86", "fbgemm"),
    reason="this processor does not multiply half-precision weights",
)
IN = 512
OUT = LARGE // IN


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator) * scale


def bound(weight: Tensor, x: Tensor) -> Tensor:
    """What rounding may do to each product in single precision."""
    return 1e-6 * x.abs() @ weight.abs().t() + 1e-30


def kept(weight: Tensor) -> int:
    return linear(weight).nbytes // weight.numel()


STORED = {
    "float16": lambda weight: weight.half().float(),
    "bfloat16": lambda weight: weight.bfloat16().float(),
    "float32": lambda weight: weight,
}


@pytest.mark.parametrize("stored", STORED)
@few
@given(
    rows=st.integers(1, 20),
    scale=st.sampled_from([1e-3, 0.02, 1.0, 300.0]),
    biased=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_large_product_is_torchs_own(
    stored: str, rows: int, scale: float, biased: bool, seed: int
) -> None:
    weight = STORED[stored](drawn(OUT, IN, seed=seed, scale=scale))
    x, to = drawn(rows, IN, seed=seed + 1), drawn(rows, OUT, seed=seed + 2)
    bias = STORED[stored](drawn(OUT, seed=seed + 3, scale=scale)) if biased else None
    expected = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    product, allowed = linear(weight, bias), bound(weight, x)
    assert ((product(x) - expected).abs() <= allowed).all()
    assert ((product.add(x, to) - expected - to).abs() <= allowed + 2e-6 * (1 + to.abs())).all()


@few
@given(
    rows=st.integers(1, 9), wide=st.integers(1, 40), out=st.integers(1, 40), biased=st.booleans()
)
def test_a_small_product_is_exact_in_double_precision(
    rows: int, wide: int, out: int, biased: bool
) -> None:
    weight, x = drawn(out, wide).double(), drawn(rows, wide, seed=1).double()
    bias = drawn(out, seed=2).double() if biased else None
    product, expected = linear(weight, bias), F.linear(x, weight, bias)
    assert torch.allclose(product(x), expected, atol=1e-12)
    assert torch.allclose(product.add(x, expected), 2 * expected, atol=1e-12)


@halves
def test_weights_are_halved_where_nothing_is_lost_and_nowhere_else() -> None:
    weight = drawn(OUT, IN, scale=0.02)
    assert kept(weight.half().float()) == 2
    assert kept(weight.bfloat16().float()) == 2
    assert kept(weight) == 4, "single-precision weights have more digits"
    assert kept(weight.half().float()[:-1]) == 4, "a small matrix gains nothing"
    assert kept(weight.double()) == 8
    assert kept(weight.bfloat16()) == 2
    one = weight.half().float()
    one[3, 3] = 1 / 3
    assert kept(one) == 4, "a single weight would be lost"
    one[3, 3] = torch.inf
    assert kept(one) == 4
    assert kept(torch.zeros(OUT, IN)) == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@few
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    size=st.integers(1, 64),
    scale=st.sampled_from([0.0, 1e-6, 1.0, 1e4]),
    eps=st.sampled_from([1e-6, 1e-5, 0.1]),
)
def test_a_norm_is_torchs_own(
    dtype: torch.dtype, shape: list[int], size: int, scale: float, eps: float
) -> None:
    x, weight = drawn(*shape, size, scale=scale).to(dtype), drawn(size, seed=1).to(dtype)
    expected = F.rms_norm(x, (size,), weight, eps)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    found = Norm(weight, eps)(x)
    assert found.dtype == dtype and torch.allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_raised_norm_multiplies_by_one_more_in_no_less_than_single_precision(
    dtype: torch.dtype,
) -> None:
    x, weight = drawn(5, 40).to(dtype), drawn(40, seed=1, scale=0.01).to(dtype)
    expected = F.rms_norm(x.double(), (40,), weight.double() + 1, 1e-6)
    found = Norm(weight, 1e-6, raised=True)(x)
    digits = torch.finfo(torch.float32 if dtype == torch.float64 else dtype).eps
    assert found.dtype == dtype and torch.allclose(found.double(), expected, rtol=digits, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("broken", ["none", "product", "rms_norm", "apply_rotary", "glu"])
def test_what_gives_nan_anywhere_is_not_taken_for_right(broken: str, activation: str) -> None:
    class Own(Operations):
        def product(self, weights: Linear, x: Tensor, to: Tensor | None = None) -> Tensor:
            return super().product(weights, x, to) + (torch.nan if broken == "product" else 0)

        def rms_norm(self, norm: Norm, x: Tensor) -> Tensor:
            return super().rms_norm(norm, x) + (torch.nan if broken == "rms_norm" else 0)

        def apply_rotary(self, x: Tensor, cos: Tensor, sin: Tensor) -> None:
            super().apply_rotary(x, cos, sin)
            if broken == "apply_rotary":
                x[-1] = torch.nan

        def glu(self, x: Tensor, activation: str) -> Tensor:
            return super().glu(x, activation) * (torch.nan if broken == "glu" else 1)

    apart = kernels._error(Own(), torch.device("cpu"), torch.bfloat16, activation)
    assert bool(apart < ROUNDED) == (broken == "none")
