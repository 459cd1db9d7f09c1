"""Every draft that fits a target, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.llm.conftest import build_model, build_tokenizer
from voiceloop.cli import main

pytestmark = pytest.mark.models

ASKED = "What is the capital of France?\nWhat is 7 times 8?\nWho wrote Hamlet?\n"


def test_all_that_fits_is_measured_and_the_best_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(ASKED)
    argv = ["bench", "llm", "--drafts", "all", "--prompts", str(prompts), "--repeats", "2"]
    argv += ["--llm.draft-tree", "on"]
    assert main([*argv, "--max-new-tokens", "24", "--price-per-hour", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    found = record["drafts"]
    drafts = ["ngram", "ngram (chain)", "starter", "starter (chain)"]
    assert list(found) == ["none", *drafts] and record["refused"] == {}
    assert record["settings"]["replies"] == 6
    plain, model = found["none"], found["starter"]
    assert plain["over_plain"] == 1 == plain["predicted"] and plain["tokens_per_round"] == 1
    assert plain["acceptance_by_position"] == [] and plain["draft_step_ms"] is None
    # How many are drafted depends on what a draft costs beside what else the machine is doing.
    assert model["tokens_per_round"] > 1 and 0 < model["draft_step_ms"]
    assert 0 < model["acceptance_by_position"][0] <= 1
    for own in found.values():
        low, high = own["interval"]
        assert low <= own["over_plain"] <= high
        assert own["same_text"] >= 5 / 6  # but for a tie
        assert own["cost_per_1000_tokens"] > 0
    assert record["best"] == max(found, key=lambda name: found[name]["over_plain"])


def test_a_draft_that_does_not_fit_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The target is smaller than the starter's draft."""
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    tokenizer = build_tokenizer()
    build_model("llama", len(tokenizer)).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(ASKED)
    argv = ["bench", "llm", "--drafts", "all", "--target", str(tmp_path / "tiny")]
    assert main([*argv, "--prompts", str(prompts), "--repeats", "1"]) == 0
    told = capsys.readouterr().out
    assert "starter does not fit: the draft 'starter draft' is larger than its target" in told
    assert "The best here: llm.draft = " in told


def test_synthetic_models_have_one_draft(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "llm", "--drafts", "all", "--synthetic", "tiny"]) == 2
    assert "synthetic models have one draft" in capsys.readouterr().err


@pytest.mark.parametrize("draft", ["auto", "none", "ngram"])
def test_a_target_without_a_draft_is_measured_plain_only(
    draft: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    tokenizer = build_tokenizer()
    build_model("llama", len(tokenizer)).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(ASKED)
    argv = ["bench", "llm", "--target", str(tmp_path / "tiny"), "--draft", draft]
    argv += ["--prompts", str(prompts), "--repeats", "1", "--report", str(tmp_path / "report")]
    assert main(argv) == 0
    told = capsys.readouterr().out
    assert "plain only, without a draft: 3 replies to 3 prompts, greedy" in told
    assert "The best here" not in told
    (row,) = (line for line in told.splitlines() if line.split()[:1] == ["none"])
    assert "100%" in row
    record = json.loads((tmp_path / "report" / "bench.json").read_text())
    assert list(record["drafts"]) == ["none"] and record["drafts"]["none"]["tokens_per_s"] > 0
