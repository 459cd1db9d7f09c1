"""What is fused is something that GPUs can run, and gives what torch's own operations give.

Without a GPU, Triton's interpreter does the work, and its compiler shows that the kernels can be
compiled and what they need. With one, `scripts/gpu_check.py` compares as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton comes with torch for CUDA on Linux alone")

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from voiceloop.llm.model import fused

pytestmark = pytest.mark.models

GPUS = {"Ampere": 80, "Ada": 89, "Hopper": 90}
"""Compute capabilities."""
MEMORY = 99 * 1024
"""Bytes that a program can have on the smallest of them."""


def test_what_is_fused_gives_what_torch_gives():
    tests = Path(__file__).with_name("interpreted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("dim", [64, 128, 256])
def test_what_is_fused_compiles_for_a_gpu_and_fits_into_its_memory(gpu, dim):
    pointers = dict.fromkeys(("q", "buffer", "out"), "*bf16") | dict.fromkeys(
        ("slot", "start"), "*i64"
    )
    numbers = dict.fromkeys(("rows", "window", "q_row", "capacity"), "i32") | {"scale": "fp32"}
    for queries in (16, 64):
        keys = fused.pieces(MEMORY, dim, 2)
        sizes = {"groups": 8, "fold": 4, "dim": dim}
        blocks = {"QUERIES": queries, "KEYS": keys, "WIDTH": dim}
        made = compiled(fused._attended, pointers | numbers, sizes | blocks, gpu)
        assert 0 < made.metadata.shared <= MEMORY
    two = {"x": "*bf16", "weight": "*fp32", "out": "*bf16"}
    rows = {"x_row": "i32", "heads": "i32", "eps": "fp32"}
    compiled(fused._rms_norm, two | rows, {"size": 16 * dim, "BLOCK": 16 * dim}, gpu)
    angles = {"x": "*bf16", "cos": "*bf16", "sin": "*bf16", "x_row": "i32"}
    half = {"heads": 40, "half": dim // 2, "HEADS": 64, "HALF": dim // 2}
    compiled(fused._apply_rotary, angles, half, gpu)
    product = dict.fromkeys(("x", "matrix", "bias", "to", "out"), "*bf16")
    product |= dict.fromkeys(("size", "columns", "by_column"), "i32")
    rows = {"rows": "i32", "x_row": "i32"}
    for missing in ({}, {"bias": None, "to": None}):
        given = {name: kind for name, kind in product.items() if name not in missing}
        constants = {"by_size": 1} | missing
        compiled(fused._one_row, given, constants | fused.ONE_ROW, gpu)
        few = constants | {"ROWS": fused.FEW} | fused.FEW_ROWS
        made = compiled(fused._few_rows, given | rows, few, gpu)
        assert 0 < made.metadata.shared <= MEMORY
    for silu in (True, False):
        gate = {"x": "*bf16", "out": "*bf16", "size": "i32"}
        compiled(fused._glu, gate, {"SILU": silu, "BLOCK": 1024}, gpu)


def compiled(kernel: Any, signature: dict[str, str], constants: dict[str, Any], gpu: str) -> Any:
    """With `constants` and options among them; what is given is aligned, as it is in passes."""
    names = kernel.arg_names
    options = {name: value for name, value in constants.items() if name not in names}
    constants = {name: value for name, value in constants.items() if name in names}
    assert {*names} == {*signature, *constants}
    types = {name: signature.get(name, "constexpr") for name in names}
    aligned = [
        at
        for at, name in enumerate(names)
        if types[name].startswith("*")
        or (types[name] == "i32" and name not in kernel.do_not_specialize)
    ]
    source = ASTSource(
        kernel,
        types,
        {(names.index(name),): value for name, value in constants.items()},
        {(at,): [["tt.divisibility", 16]] for at in aligned},
    )
    return compile(
        source,
        GPUTarget("cuda", GPUS[gpu], 32),
        {"num_stages": fused.STAGES, **fused.OPTIONS, **options},
    )
