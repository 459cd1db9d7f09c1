"""Asks the everyday questions, and keeps the readers' grades of answers that are the same.

    python -m lab.everyday.run --preset mini --out lab/everyday/answers-mini.json

`voiceloop bench everyday` asks and judges them too, without grades. An answer keeps its grades
(`lab/everyday/grade.py`) where it, and what was said before it, are still the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from lab.everyday.grades import kept, summary
from lab.typed import save
from voiceloop.bench.everyday import ask, with_espeak
from voiceloop.bench.record import Progress
from voiceloop.errors import VoiceloopError
from voiceloop.process import configure
from voiceloop.settings.flags import Command, parse, written
from voiceloop.status import engine_names


class Everyday(Command, frozen=True, kw_only=True):
    """Ask the everyday questions, and judge the answers."""

    out: Annotated[Path, written("A.json")] = Path("answers.json")
    """The file of the answers, with their faults and grades."""


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    command = parse({"run": Everyday}, ["run", *argv])
    assert isinstance(command, Everyday), "its help is above"
    config = with_espeak(command)
    configure(config.threads)
    with Progress(sys.stderr) as progress:
        records = ask(config, progress)
    if command.out.exists():
        records = kept(records, json.loads(command.out.read_text(encoding="utf-8"))["answers"])
    print(*summary(records), sep="\n")
    save(command.out, {"running": engine_names(config), "answers": records})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except VoiceloopError as error:
        sys.exit(f"{error.message}\n{error.hint}")
