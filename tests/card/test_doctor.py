"""The checks of the sound card over one that PulseAudio makes up, as PortAudio shows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.card.pulse import VirtualCard

pytestmark = [pytest.mark.audio, pytest.mark.parametrize("card", [False], indirect=True)]

CHECK = """
from voiceloop.settings.config import Config
from voiceloop.doctor.examine import Case
from voiceloop.doctor.checks import sound
for found in sound(Case(Config())):
    print(found.check, found.mark, found.text, sep="|")
"""


def check(card: VirtualCard) -> dict[str, list[str]]:
    """The mark and the text that are found of microphone and speaker."""
    done = subprocess.run(
        [sys.executable, "-c", CHECK], env=card.environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return {check: told for check, *told in (line.split("|") for line in done.stdout.splitlines())}


@contextmanager
def noise(card: VirtualCard) -> Iterator[None]:
    """Somebody makes noise at the microphone."""
    player = ["pacat", "--playback", "--device=user", "--raw", "/dev/urandom"]
    with subprocess.Popen(player, env=card.environment) as playing:
        try:
            yield
        finally:
            playing.kill()


def test_silence_is_told_and_sound_is_heard(card: VirtualCard) -> None:
    silent = check(card)
    assert silent["microphone"] == ["warning", "the default one gives nothing but zeros"]
    assert silent["speaker"][0] == "ok"
    with noise(card):
        heard = check(card)
    assert heard["microphone"][0] == "ok", heard
    assert not any(card.heard()), "nothing is to be heard of it"


def test_a_card_that_has_gone_is_told(card: VirtualCard) -> None:
    card.unplug()
    assert {mark for mark, _ in check(card).values()} == {"warning"}
