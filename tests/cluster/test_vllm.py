"""vLLM's own classes take the ways to speculate that docs/deploy.md writes down."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cluster/bin/python"
# The models of a draft are not here, so what is checked after the fields is left out for it.
PARSE = """
import json, sys
from pydantic.dataclasses import dataclass
from vllm.config.speculative import SpeculativeConfig
@dataclass(config={"extra": "forbid"})
class FieldsOnly(SpeculativeConfig):
    def __post_init__(self):
        pass
given = json.load(sys.stdin)
found = (FieldsOnly if "model" in given else SpeculativeConfig)(**given)
print(json.dumps([found.method, found.num_speculative_tokens]))
"""

if not PYTHON.exists():
    pytest.skip("vLLM is not installed: make cluster", allow_module_level=True)


def documented() -> list[dict[str, Any]]:
    text = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    return [yaml.safe_load(found) for found in re.findall(r"\{method: .*?\}", text)]


def parse(given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-c", PARSE], input=json.dumps(given), capture_output=True, text=True
    )


@pytest.mark.parametrize("given", documented(), ids=lambda given: given["method"])
def test_a_documented_way_to_speculate_is_taken(given: dict[str, Any]) -> None:
    done = parse(given)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [given["method"], given["num_speculative_tokens"]]


@pytest.mark.parametrize("given", documented(), ids=lambda given: given["method"])
def test_what_vllm_does_not_know_is_refused(given: dict[str, Any]) -> None:
    wrong: list[dict[str, Any]] = [
        {"num_speculative_tokens": 0},
        {"method": "guess"},
        {"num_draft_tokens": 4},
    ]
    for change in wrong:
        assert parse(given | change).returncode != 0, change


def test_all_ways_are_documented() -> None:
    assert {one["method"] for one in documented()} == {"draft_model", "ngram", "eagle3"}
