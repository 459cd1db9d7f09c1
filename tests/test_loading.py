"""Loading: what it does to the process that it is done in."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.models

COUNTS = """
from threadpoolctl import ThreadpoolController
from voiceloop.config import Config
from voiceloop.loading import load_asr

load_asr(Config())
for pool in ThreadpoolController().info():
    print(pool["user_api"], pool["num_threads"])
"""


def test_nothing_spins_beside_the_models() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    told = subprocess.run(
        [sys.executable, "-c", COUNTS], env=environment, capture_output=True, text=True, check=True
    )
    counts = dict(line.split() for line in told.stdout.splitlines())
    most = max(1, (os.cpu_count() or 1) // 2)
    assert counts["blas"] == "1", "numpy's products wait for each other"
    assert int(counts.get("openmp", "1")) <= most
