"""The virtual sound card of the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.card.pulse import VirtualCard, virtual_card


@pytest.fixture
def card(
    tmp_path: Path, require_program: Callable[[str], Path], request: pytest.FixtureRequest
) -> Iterator[VirtualCard]:
    """The virtual sound card, with its files in a folder of their own.

    Its microphone hears the speaker, but for tests that set the parameter to False.
    """
    folder = tmp_path / "card"
    folder.mkdir()
    with virtual_card(folder, require_program, echo=getattr(request, "param", True)) as made:
        yield made
