"""`models.train.draft` from a model's folder to a draft that replies are made with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from models.train.draft.__main__ import main
from models.train.draft.replies import load_replies
from models.train.draft.requests import HELD_OUT, dialogues
from tests.ggufkinds import write_kind
from tests.llm.conftest import build_model, build_tokenizer
from voiceloop.cli import main as cli
from voiceloop.llm.draft.featuredraft import LayerDrafter
from voiceloop.llm.draft.trained import CARD, WEIGHTS, LoadedHead
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.pair import load_pair
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

TINY = ["--threads", "1", "--tokens", "64"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of single precision, with its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = build_tokenizer()
    build_model("llama", len(tokenizer), 0, torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("\n".join(f"What is {a} and {b}?" for a in range(16) for b in range(16)))
    return path


def said(llm: SpeculativeLlm, text: str) -> tuple[list[int], int, int]:
    conversation = llm.conversation()
    items = [item for item in conversation.reply(text, 1) if isinstance(item, TokenBurst)]
    counters = conversation.counters
    conversation.close()
    return [i for item in items for i in item.ids], counters.drafted, counters.accepted


def test_a_draft_is_trained_goes_on_after_a_stop_and_changes_no_reply(
    folder: Path, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "draft"
    argv = ["--target", str(folder), "--out", str(out), "--prompts", str(prompts)]
    assert main([*argv, *TINY, "--minutes", "0.1"]) == 0
    told = capsys.readouterr()
    assert f"--llm.draft {out}" in told.out
    assert "replies: " in told.err and "learning: " in told.err and " left" in told.err
    first = json.loads((out / "training" / "state.json").read_text())
    written = {path: path.stat().st_mtime_ns for path in (out / "training").glob("replies-*")}
    assert written and first["steps"] > 0
    # What was cut off in the middle of a write, and a batch that was damaged since, are no loss.
    (out / "training" / "replies-00000.safetensors").write_bytes(b"half")
    (out / "training" / "learned.part").write_bytes(b"half")
    more = (first["generating_s"] + first["training_s"] + 3) / 60
    assert main([*argv, *TINY, "--minutes", f"{more:.4f}"]) == 0
    assert load_replies(out / "training" / "replies-00000.safetensors") is not None
    capsys.readouterr()
    then = json.loads((out / "training" / "state.json").read_text())
    assert then["steps"] > first["steps"]
    assert then["curve"][: len(first["curve"])] == first["curve"]
    assert not (out / "training" / "learned.part").exists()
    exact: Any = "float64"  # no ties
    config = LlmConfig(target=str(folder), draft=str(out), max_new_tokens=40, dtype=exact)
    loaded = load_pair(config)
    assert isinstance(loaded[1], LoadedHead)
    drafted, accepted = 0, 0
    llm = SpeculativeLlm(*loaded, config)
    alone = replace(config, draft="none")
    plain = SpeculativeLlm(load_pair(alone)[0], None, alone)
    for text in ("What is 3 and 40?", "Hello there.", "Tell me more."):
        ids, tried, right = said(llm, text)
        assert ids == said(plain, text)[0]
        drafted, accepted = drafted + tried, accepted + right
    assert drafted > 0
    # Another target, and other prompts, are refused.
    assert main([*argv[:-2], *TINY]) == 2
    assert "holds the training of another target, or of other prompts" in capsys.readouterr().err


def test_a_draft_for_a_gguf_file_is_trained_and_used(
    prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "model.gguf", tmp_path / "draft"
    write_kind(file, "llama")
    argv = ["--target", str(file), "--out", str(out), "--prompts", str(prompts)]
    assert main([*argv, *TINY, "--minutes", "0.1"]) == 0
    assert f"--llm.target {file} --llm.draft {out}" in capsys.readouterr().out
    state = json.loads((out / "training" / "state.json").read_text())
    assert state["steps"] > 0
    count: Any = 3
    config = LlmConfig(
        target=str(file), draft=str(out), max_new_tokens=40, num_speculative_tokens=count
    )
    llm = SpeculativeLlm(*load_pair(config), config)
    assert isinstance(llm._drafter, LayerDrafter)
    ids, tried, _ = said(llm, "what is 7?")
    alone = replace(config, draft="none")
    assert ids == said(SpeculativeLlm(*load_pair(alone), alone), "what is 7?")[0]
    assert tried > 0


def test_bad_input_is_told_in_one_line(
    folder: Path, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few, binary, long = (tmp_path / name for name in ("few", "binary", "long"))
    few.write_text("one\ntwo\ntwo\n")
    binary.write_bytes(bytes(range(256)) * 10)
    long.write_text("x" * 3000 + "\n" + "\n".join(map(str, range(300))))
    out = tmp_path / "out"
    target = ["--target", str(folder)]
    for argv, words in (
        (["--out", str(out)], "the starter has a draft of its own"),
        ([*target, "--out", str(few)], "is a file"),
        ([*target, "--out", str(few / "deeper")], "cannot be made"),
        ([*target, "--out", str(out), "--prompts", str(tmp_path / "none")], "cannot be read"),
        ([*target, "--out", str(out), "--prompts", str(tmp_path)], "cannot be read"),
        ([*target, "--out", str(out), "--prompts", str(few)], "2 different requests"),
        ([*target, "--out", str(out), "--prompts", str(binary)], "is not UTF-8 text"),
        ([*target, "--out", str(out), "--prompts", str(long)], "3000 characters"),
        ([*target, "--out", str(out), "--minutes", "0"], "minutes"),
        (["--target", str(tmp_path / "absent"), "--out", str(out)], "there is no folder"),
    ):
        assert main(argv) == 2, argv
        err = capsys.readouterr().err
        assert words in err and "hint: " in err and "Traceback" not in err, err


def test_a_draft_for_another_target_is_refused_where_it_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.llm.test_featuredraft import written

    draft = written(tmp_path / "draft")
    assert (draft / CARD).exists() and (draft / WEIGHTS).exists()
    argv = [
        "ask",
        "models/starter/demo.wav",
        "--llm.target",
        str(folder),
        "--llm.draft",
        str(draft),
    ]
    assert cli.main([*argv, "--pace", "max"]) == 2
    assert "was trained for some-model, which is another model" in capsys.readouterr().err


def test_the_bundled_requests_are_several_thousand_and_none_is_held_out_and_learned() -> None:
    found = dialogues(None)
    assert len(found.training) > 3000 and len(found.held_out) == HELD_OUT
    learned = {turns[0].lower() for turns in found.training}
    assert not [text for (text,) in found.held_out if any(text.lower() in one for one in learned)]
    assert dialogues(None) == found
    texts = [text for turns in found.training for text in turns]
    assert not [text for text in texts if "{" in text or text != " ".join(text.split())]
    assert {len(turns) for turns in found.training} == {1, 2}
