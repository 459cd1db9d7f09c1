"""The record of `bench llm`, of one draft and of every draft that fits, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.bench.conftest import quiet
from tests.llm.conftest import build_model, build_tokenizer
from voiceloop.bench.command import BenchLlm
from voiceloop.bench.llm import PROMPTS, read_prompts
from voiceloop.bench.llm import run as bench
from voiceloop.bench.modes import BenchPrompt, MeasuredReply, interleave
from voiceloop.cli.main import main
from voiceloop.errors import ConfigError

pytestmark = pytest.mark.models

ASKED = "What is the capital of France?\nWhat is 7 times 8?\nWho wrote Hamlet?\n"


def with_tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a tiny model into `folder`, where nothing else is, and give a file of questions."""
    monkeypatch.setenv("VOICELOOP_MODELS", str(folder / "models"))
    tokenizer = build_tokenizer()
    build_model("llama", len(tokenizer)).save_pretrained(folder / "tiny")
    tokenizer.save_pretrained(folder / "tiny")
    prompts = folder / "prompts.txt"
    prompts.write_text(ASKED)
    return prompts


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
    prompts = with_tiny(tmp_path, monkeypatch)
    argv = ["bench", "llm", "--drafts", "all", "--target", str(tmp_path / "tiny")]
    assert main([*argv, "--prompts", str(prompts), "--repeats", "1"]) == 0
    told = capsys.readouterr().out
    assert "the draft 'starter draft' is larger than its target" in told
    assert "| best" in told


def test_the_configured_draft_is_measured_beside_plain_decoding(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(ASKED)
    command = BenchLlm(max_new_tokens=16, prompts=prompts, repeats=1, price_per_hour=3.6)
    found = bench(command, quiet)[0].to_json()
    assert list(found["modes"]) == ["plain", "speculative"]
    plain, own = found["modes"].values()
    assert plain["drafted"] == 0 and plain["tokens_per_round"] == 1 and plain["acceptance"] is None
    assert own["drafted"] > 0 and own["tokens_per_round"] > 1 and 0 < own["acceptance"] <= 1
    for mode in (plain, own):  # 3.6 an hour is a thousandth a second
        assert mode["ttft_ms"] > 0
        assert mode["cost_per_1000_tokens"] == pytest.approx(1 / mode["tokens_per_s"], rel=1e-3)
    assert found["ratios"]["speculative_over_plain"] > 0
    assert found["settings"]["replies"] == found["settings"]["replies_planned"] == 3
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_target_without_a_draft_is_measured_plain_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompts = with_tiny(tmp_path, monkeypatch)
    argv = ["bench", "llm", "--target", str(tmp_path / "tiny"), "--llm.draft", "none"]
    argv += ["--prompts", str(prompts), "--repeats", "1", "--report", str(tmp_path / "report")]
    assert main(argv) == 0
    told = capsys.readouterr().out
    assert "bench drafts" in told and "none" in told
    record = json.loads((tmp_path / "report" / "bench.json").read_text())
    assert list(record["drafts"]) == ["none"] and record["drafts"]["none"]["tokens_per_s"] > 0


class Scripted:
    """A mode that only notes that it was asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        self.log.append(self.name)
        return MeasuredReply((), 2, 1.0, 0.5, (), 1)


def run(limit_s: float, repeats: int = 4) -> tuple[list[str], dict[str, list[MeasuredReply]]]:
    log: list[str] = []
    modes = {name: Scripted(name, log) for name in "abc"}
    prompts = [BenchPrompt("", ()), BenchPrompt("", ())]
    return log, interleave(modes, prompts * repeats, limit_s, quiet)


def test_modes_take_turns_at_being_first() -> None:
    log, answers = run(math.inf)
    rounds = [log[start : start + 3] for start in range(0, len(log), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert [one[0] for one in rounds] == ["a", "b", "c", "a", "b", "c", "a", "b"]
    assert {len(own) for own in answers.values()} == {8}


def test_when_time_is_up_every_mode_has_answered_as_often() -> None:
    log, answers = run(-1.0)
    assert log == ["a", "b", "c"]
    assert {len(own) for own in answers.values()} == {1}


@pytest.mark.parametrize("content", [None, b"", b"\n  \n", b"\xff\xfe\x00"], ids=str)
def test_a_file_without_prompts_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_prompts(path)
    assert "prompts.txt" in refused.value.message
    assert "--prompts" in refused.value.hint


@pytest.mark.parametrize(
    "command",
    [
        BenchLlm(repeats=0),
        BenchLlm(price_per_hour=-1.0),
        BenchLlm(price_per_hour=math.inf),
        BenchLlm(max_new_tokens=1),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_carried_out_is_refused(command: BenchLlm) -> None:
    with pytest.raises(ConfigError) as refused:
        bench(command, quiet)
    assert refused.value.hint


def test_the_questions_are_of_the_domain_and_were_held_out() -> None:
    from models.train.domain import questions

    asked = read_prompts(PROMPTS)
    assert len(asked) == len(set(asked)) >= 24
    assert set(asked) <= set(questions("heldout", 3000))


KINDS = {".txt", ".toml"}


def test_what_is_no_code_ships_in_the_wheel() -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).resolve().parents[2]
    files = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    data = [path for path in (root / "voiceloop" / "bench").rglob("*.*") if path.suffix in KINDS]
    assert len(data) == 4
    assert {path.relative_to(root).as_posix() for path in data} <= files
    assert not [path for path in files if path.startswith(("lab/", "tools/", "scripts/"))]
