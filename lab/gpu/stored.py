"""Times passes of a GGUF file, which the installed library of llama.cpp runs on its own device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from lab.gpu.rows import Row, not_here

ROWS = (1, 2, 4, 8)
PROMPT, REPEATS = 64, 9
NAME = "llama.cpp: a pass over several rows, ms"


def stored(file: Path | None) -> Iterator[Row]:
    """Yield the row about passes of `file`, in which every row gives logits."""
    if file is None:
        yield not_here(NAME, "no file is named: --gguf FILE")
        return
    # Needs the library, which a machine with torch alone does not have.
    from voiceloop.llm.gguf.context import Context
    from voiceloop.llm.gguf.file import GgufModel

    context = Context(GgufModel(file, file.name), 1024)
    context.extend(list(range(PROMPT)), 1)
    found = list[str]()
    for rows in ROWS:
        times = list[float]()
        for _ in range(REPEATS + 1):
            began = perf_counter()
            context.extend(list(range(rows)), rows)
            times.append(1000 * (perf_counter() - began))
            context.cut(PROMPT)
        found.append(f"{rows}: {median(times[1:]):.3g}")
    yield Row(NAME, f"{', '.join(found)}; {file.name}")
