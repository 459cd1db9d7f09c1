"""Checks the engine on a GPU and measures it there, in less than eight minutes.

    python scripts/gpu_check.py

Models are built in place from random numbers, so nothing is downloaded. Only torch, transformers
and numpy need to be installed. The result is one table: checks first, then figures. The exit status
is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import torch

# voiceloop need not be installed here.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.bare import complete
from voiceloop.process import ENVIRONMENT

MINUTES = 7.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run all checks and measurements, and print the table. Return the exit status."""
    parser = argparse.ArgumentParser(description="Checks and measures the engine on a GPU.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--pairs", nargs="+", default=["7b+0.5b", "8b+1b"], metavar="PAIR")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="a file for llama.cpp to run")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all of it")
    options = parser.parse_args(argv)
    began = perf_counter()
    os.environ.update(ENVIRONMENT)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu_check: torch finds no CUDA device here", file=sys.stderr)
        print("hint: --device cpu --pairs tiny tries the script itself", file=sys.stderr)
        return 2
    complete()
    from lab.gpu.rows import rows
    from lab.gpu.sections import Course, sections
    from voiceloop.bench.record import Progress, surroundings

    device = torch.device(options.device)
    logging.basicConfig(
        level=logging.WARNING
    )  # stderr also gets the warning that rounds are not captured
    where = surroundings()
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"
    print(f"{gpu}; {where['processor']}; torch {where['torch']}, voiceloop {where['voiceloop']}\n")
    failed = 0
    with Progress(sys.stderr) as progress:
        course = Course(device, options.pairs, options.minutes, progress, options.gguf)
        for row in rows(sections(course)):
            failed += row.failed
            print(row, flush=True)
    print(f"\n{failed} failed, {(perf_counter() - began) / 60:.1f} minutes", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
