"""The words of the package: one name for one class, and docstrings that say something."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import voiceloop

pytestmark = pytest.mark.pure

PACKAGE = Path(voiceloop.__file__).parent
POINTERS = re.compile(r"(See|Likewise|The same as) `[^`]+`\.?")
RIDDLES = re.compile(r"\blikewise\b|\bthe same, by\b", re.IGNORECASE)


@cache
def sources() -> dict[str, ast.Module]:
    """The package's modules by their paths."""
    return {
        file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
    }


def shared(modules: dict[str, ast.Module]) -> set[str]:
    """Names that more than one class has."""
    names = (
        node.name
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    return {name for name, times in Counter(names).items() if times > 1}


def docstrings(modules: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Every docstring, of fields and constants too, on one line, with its place."""
    for file, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield f"{file}:{node.lineno}", " ".join(str(node.value.value).split())


def pointers(modules: dict[str, ast.Module]) -> list[str]:
    """Where a docstring names only another one."""
    return [place for place, text in docstrings(modules) if POINTERS.fullmatch(text)]


def riddles(modules: dict[str, ast.Module]) -> list[str]:
    """Where a docstring can be understood only together with the one before it."""
    return [place for place, text in docstrings(modules) if RIDDLES.search(text)]


def test_no_two_classes_share_a_name() -> None:
    found = shared(sources())
    assert not found


def test_no_docstring_needs_another_one() -> None:
    assert not pointers(sources())
    assert not riddles(sources())


def test_each_fault_is_seen() -> None:
    first = ast.parse('class Plan:\n    size: int\n    """Likewise of the sizes."""\n')
    second = ast.parse('class Plan:\n    def run(self):\n        """See `Job.run`."""\n')
    third = ast.parse(
        '"""The same, by\nwhat was kept."""\n\n\nclass Likewisely:\n    """A test."""\n'
    )
    modules = {"first.py": first, "second.py": second, "third.py": third}
    assert shared(modules) == {"Plan"}
    assert pointers(modules) == ["second.py:3"]
    assert riddles(modules) == ["first.py:3", "third.py:1"]
