"""Fixtures for the package of several replies."""

from __future__ import annotations

from tests.llm.conftest import workshop
from tests.llm.test_engine import folders

__all__ = ["folders", "workshop"]
