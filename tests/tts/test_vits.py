"""Coqui's own decoder in windows, against one run over the whole latent."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.tts.delivery import FIRST, LARGEST, windows
from voiceloop.tts.vits import LENGTHS, Vocoder, geometry

pytestmark = pytest.mark.models

CHANNELS = 6
SHAPES = {
    "usual": ("1", [3, 7], [[1, 3, 5]] * 2, [4, 3, 2], [8, 7, 4]),
    "small": ("2", [3], [[1, 2]], [4, 3, 2], [8, 7, 4]),
    "wide": ("1", [11], [[1, 5, 9]], [4, 3, 2], [8, 7, 4]),
    "uneven": ("2", [5, 3], [[1, 3]] * 2, [5, 2], [12, 7]),
    "narrow": ("2", [3], [[1, 1]], [4, 2], [4, 2]),
}
"""Decoders: the type of residual blocks, their kernels and dilations, the factors of the upsampling
and its kernels. `uneven` gives samples beyond its last frame."""


def make_decoder(vits: Any, shape: str) -> Any:
    torch.manual_seed(len(shape))
    block, kernels, dilations, factors, upsample_kernels = SHAPES[shape]
    decoder = vits.HifiganGenerator(
        CHANNELS, 1, block, dilations, kernels, upsample_kernels, 16, factors,
        inference_padding=0, conv_post_bias=False,
    ).eval()  # fmt: skip
    for parameter in decoder.parameters():
        parameter.data *= 2  # or what is at the edge of the context is lost in rounding
    return decoder


@pytest.fixture(scope="module", params=SHAPES)
def decoder(vits: Any, request: pytest.FixtureRequest) -> Any:
    return make_decoder(vits, request.param)


def test_a_frame_depends_on_its_context_and_on_all_of_it(decoder: Any) -> None:
    shape = geometry(decoder)
    frame, frames = 40, 90
    latent = torch.randn(1, CHANNELS, frames, requires_grad=True)
    samples = decoder(latent)[0, 0, frame * shape.hop : (frame + 1) * shape.hop]
    (slope,) = torch.autograd.grad(samples.square().sum(), latent)
    depends = slope[0].abs().sum(0).nonzero().flatten().tolist()
    assert depends == list(range(frame - shape.before, frame + shape.after + 1))


@settings(max_examples=40)
@given(st.data(), st.integers(1, 70))
def test_windows_of_any_size_give_what_one_run_gives(
    vits: Any, data: st.DataObject, frames: int
) -> None:
    decoder = make_decoder(vits, data.draw(st.sampled_from(list(SHAPES))))
    latent = torch.randn(1, CHANNELS, frames, generator=torch.Generator().manual_seed(frames))
    with torch.inference_mode():
        whole = decoder(latent)[0, 0].numpy()
    cuts = sorted(data.draw(st.sets(st.integers(1, frames), max_size=8)) | {0, frames})
    vocoder = Vocoder(decoder)
    joined = np.concatenate([vocoder.decode(latent, a, b) for a, b in pairwise(cuts)])
    assert np.abs(whole).max() > 0.05
    assert joined.shape == whole.shape
    assert np.abs(joined - whole).max() < 1e-5


@settings(max_examples=40)
@given(st.data(), st.integers(1, 330))
def test_windows_of_a_few_lengths_sound_like_exact_ones(
    vits: Any, data: st.DataObject, frames: int
) -> None:
    decoder = make_decoder(vits, data.draw(st.sampled_from(list(SHAPES))))
    latent = torch.randn(1, CHANNELS, frames, generator=torch.Generator().manual_seed(frames))
    cut = list(windows(frames))
    exact, given = Vocoder(decoder), list[int]()
    shape = geometry(decoder)
    decoder.register_forward_pre_hook(lambda module, args: given.append(args[0].shape[-1]))
    bucketed = Vocoder(decoder, LENGTHS["cuda"])
    for start, end in cut:
        plain = exact.decode(latent, start, end)
        given.clear()
        pcm = bucketed.decode(latent, start, end)
        assert pcm.shape == plain.shape
        assert np.abs(pcm - plain).max() < 1e-5
        whole = start < shape.before and end > frames - shape.after
        assert whole or given[-1] in LENGTHS["cuda"]
        # All lengths are planned in the first call, and no other is met later.
        assert len(given) == 1 or (start == 0 and given[:-1] == list(LENGTHS["cuda"]))


def test_weights_are_fixed_once_and_stay_what_they_were(vits: Any) -> None:
    decoder, latent = make_decoder(vits, "usual"), torch.randn(1, CHANNELS, 9)
    before = decoder(latent)
    assert torch.nn.utils.parametrize.is_parametrized(decoder.ups[0])
    for _ in range(2):
        Vocoder(decoder)
        assert not any(map(torch.nn.utils.parametrize.is_parametrized, decoder.modules()))
        assert torch.equal(decoder(latent), before)


@given(st.integers(0, 3000), st.integers(1, 50), st.integers(1, 300))
def test_windows_cover_all_frames_and_grow(frames: int, first: int, largest: int) -> None:
    cut = list(windows(frames, first=first, largest=max(first, largest)))
    assert [frame for start, end in cut for frame in range(start, end)] == list(range(frames))
    sizes = [end - start for start, end in cut]
    assert all(b <= 2 * a or b < 1.5 * largest for a, b in pairwise(sizes[:-1]))
    assert sizes[:-1] == sorted(sizes[:-1])
    assert max(sizes, default=0) <= 1.5 * max(first, largest)


def test_the_first_window_is_short_and_the_others_soon_are_long() -> None:
    assert list(windows(690)) == [
        (0, 20), (20, 60), (60, 140), (140, 300), (300, 460), (460, 690)
    ]  # fmt: skip
    assert list(windows(25)) == [(0, 25)]
    assert (FIRST, LARGEST) == (20, 160)
