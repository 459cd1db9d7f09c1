"""What several tests of the bench use."""

from __future__ import annotations


def quiet(_text: str) -> None:
    """Progress that nobody watches."""
