"""The size that the package may have is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import size

pytestmark = pytest.mark.real

MODULE = '''"""Docstring,
of two lines."""

from math import (
    pi,
)

AREA = pi  # a comment
"""What it is."""


def twice(x: float) -> float:
    """Double."""
    return (
        2 * x
    )
'''


def test_code_is_what_is_neither_empty_nor_a_comment_nor_documentation() -> None:
    assert size.measured(MODULE) == (8, 3)


def test_each_limit_that_is_exceeded_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py", "inner/c.py"):
        (tmp_path / name).write_text(MODULE, encoding="utf-8")
    for limit, value in {"CODE": 24, "IMPORTS": 9, "FILES": 2, "TOP": 1}.items():
        monkeypatch.setattr(size, limit, value)
    assert size.exceeded(tmp_path) == []
    for limit, value in {"CODE": 23, "IMPORTS": 8, "FILES": 1, "TOP": 0}.items():
        monkeypatch.setattr(size, limit, value)
    code, imports, top, folder = size.exceeded(tmp_path)
    assert "24 lines of code, and 23" in code and "9 lines of imports, and 8" in imports
    assert f"{tmp_path} has 1" in top and "inner has 2" in folder
