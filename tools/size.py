"""Measures the size of the package, and fails where it exceeds what was reached: `make lint`.

A line of code is a line with a token that is neither a comment nor part of a docstring. The limits
only ever get smaller: whoever takes code out lowers them to what is left.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path("voiceloop")
CODE = 38_424
"""Maximum number of lines of code."""
IMPORTS = 4_185
"""Maximum number of these lines that are imports."""
FILES = 16
"""Maximum number of modules in a folder."""
TOP = 15
"""The same for modules at the top of the package."""
SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.ENCODING),
}


def measured(source: str) -> tuple[int, int]:
    """Return the numbers of lines of code and of lines of imports in a module."""
    documentation, imports, code = set[int](), set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                documentation.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation), len(imports)


def exceeded(package: Path) -> list[str]:
    """Return a sentence for each limit that `package` exceeds."""
    files = sorted(package.rglob("*.py"))
    sizes = [measured(file.read_text(encoding="utf-8")) for file in files]
    code, imports = (sum(column) for column in zip(*sizes, strict=True))
    found = list[str]()
    if code > CODE:
        found.append(f"{package} has {code:,} lines of code, and {CODE:,} are allowed")
    if imports > IMPORTS:
        found.append(f"{package} has {imports:,} lines of imports, and {IMPORTS:,} are allowed")
    for folder, count in Counter(file.parent for file in files).items():
        most = TOP if folder == package else FILES
        if count > most:
            found.append(f"{folder} has {count} modules, and {most} are allowed")
    return found


if __name__ == "__main__":
    problems = exceeded(PACKAGE)
    sys.exit("\n".join(problems) or 0)
