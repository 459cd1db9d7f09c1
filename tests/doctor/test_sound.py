"""What default devices come to, by hand and on a virtual sound card."""

from __future__ import annotations

import numpy as np
import pytest

from tests.soundcards import HandCard
from voiceloop.audio.portaudio import Kind
from voiceloop.doctor.checks import of_device
from voiceloop.errors import DeviceError

pytestmark = pytest.mark.virtual

NAME = "Annabel's AirPods 00-1B-63-84-45-E6"


class Driver(HandCard):
    """A card that gives or takes a tenth of a second each time that somebody waits for it."""

    def __init__(self, level: float = 0.1, *, dead: bool = False, refuses: str = "") -> None:
        super().__init__(48_000)
        self._level, self._dead, self._refuses = level, dead, refuses
        self._kind: Kind = "input"

    def open(self, kind: Kind, name: str | None, callback, finished, rate: int | None = None):
        if self._refuses == "open":
            raise DeviceError(f"the {kind} '{NAME}' cannot be opened: Device unavailable", "wait")
        self._kind = kind
        return super().open(kind, name, callback, finished, rate)

    def start(self) -> None:
        if self._refuses == "start":
            raise RuntimeError(f"{NAME} is busy")
        super().start()

    def wait(self, seconds: float) -> None:
        """Time passes."""
        assert seconds > 0 and self.state == "started"
        if self._dead:
            return
        count = round(self.samplerate / 10)
        if self._kind == "input":
            self.record(np.full(count, self._level, np.float32))
        else:
            block = np.full((count, self.channels), np.nan, np.float32)
            self._call(block, count, None, None)
            assert not block.any(), "nothing is to be heard"


def found(kind: Kind, driver: Driver):
    result = of_device(kind, driver.open, lambda kind: [NAME, "default"], driver.wait)
    assert NAME not in result.text + result.cure, "devices are not named"
    return result


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_device_that_works(kind: Kind) -> None:
    driver = Driver()
    result = found(kind, driver)
    assert (result.mark, result.cure) == ("ok", "")
    assert "48000 Hz" in result.text
    assert driver.state == "closed"


def test_a_microphone_that_gives_only_zeros_is_told() -> None:
    result = found("input", Driver(level=0.0))
    assert result.mark == "warning" and "zeros" in result.text and "muted" in result.cure


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_device_that_does_not_move_is_told_and_closed(kind: Kind) -> None:
    driver = Driver(dead=True)
    result = found(kind, driver)
    assert result.mark == "warning" and "no sound" in result.text and result.cure
    assert driver.state == "closed"


@pytest.mark.parametrize("refuses", ["open", "start"])
@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_device_that_refuses_is_told(kind: Kind, refuses: str) -> None:
    result = found(kind, Driver(refuses=refuses))
    assert result.mark == "warning" and "does not work" in result.text
    assert "voiceloop devices" in result.cure


def test_where_there_is_none_the_browser_is_the_way() -> None:
    error = DeviceError("there is no speaker", "connect one")

    def listed(kind: Kind) -> list[str]:
        raise error

    result = of_device("output", Driver().open, listed, lambda seconds: None)
    assert (result.check, result.mark, result.text) == ("speaker", "warning", error.message)
    assert result.cure.startswith(error.hint) and "voiceloop serve" in result.cure
