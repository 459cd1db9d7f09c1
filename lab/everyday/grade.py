"""Takes the grades that readers give to everyday answers, and counts them.

    python -m lab.everyday.grade lab/everyday/answers-mini.json --reader 1 --sheet sheet.json
    python -m lab.everyday.grade lab/everyday/answers-mini.json --filled sheet.json
    python -m lab.everyday.grade lab/everyday/answers-mini.json

The first line writes a sheet of the answers that reader 1 has not graded yet. The reader fills in
`grade` and `harmful` as `GRADING.md` says. The second line puts the grades beside the answers, and
`lab.everyday.run` leaves them there as long as the answers stay the same. Every line prints the
counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from msgspec import ValidationError

from lab.everyday.grades import merged, sheet, summary
from lab.typed import save


def main() -> None:
    """Run the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("answers", type=Path, help="what lab.everyday.run wrote")
    parser.add_argument("--reader", default="1", help="the name of the reader")
    parser.add_argument("--sheet", type=Path, help="write a sheet for the reader")
    parser.add_argument("--filled", type=Path, help="put the grades of a sheet beside the answers")
    options = parser.parse_args()
    record = json.loads(options.answers.read_text(encoding="utf-8"))
    if options.filled:
        filled = json.loads(options.filled.read_text(encoding="utf-8"))
        try:
            record["answers"] = merged(record["answers"], filled)
        except ValidationError as error:
            sys.exit(f"{options.filled}: {error}")
        save(options.answers, record)
    if options.sheet:
        save(options.sheet, sheet(record["answers"], options.reader))
    print(*summary(record["answers"]), sep="\n")


if __name__ == "__main__":
    main()
