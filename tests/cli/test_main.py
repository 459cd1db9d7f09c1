"""The commands as a user meets them: mistakes cost one line and a hint, answers are complete."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from tests.llm.remote.chatservers import Request, Scripted, saying
from voiceloop.bundled import STARTER_HEARS, bundled
from voiceloop.cli.main import COMMANDS, main

pytestmark = pytest.mark.real

DEMO = bundled("models/starter/demo.wav")


def wav(path: Path, pcm: np.ndarray, rate: int = 16_000, subtype: str = "PCM_16") -> Path:
    sf.write(path, pcm, rate, subtype=subtype)
    return path


def silence(path: Path) -> Path:
    return wav(path, np.zeros(16_000, np.float32))


def bad_files(folder: Path) -> dict[str, Path]:
    """Every kind of file that cannot be answered."""
    whole = silence(folder / "whole.wav").read_bytes()
    files = {
        "missing": folder / "missing.wav",
        "folder": folder / "folder.wav",
        "empty": folder / "empty.wav",
        "text": folder / "text.wav",
        "header": folder / "header.wav",
        "no samples": wav(folder / "zero.wav", np.zeros(0, np.float32)),
        "nan": wav(folder / "nan.wav", np.full(1000, np.nan, np.float32), subtype="FLOAT"),
        "slow": wav(folder / "slow.wav", np.zeros(1000, np.float32), 4000),
    }
    files["folder"].mkdir()
    files["empty"].touch()
    files["text"].write_text("this is a shopping list, not a recording\n" * 20)
    files["header"].write_bytes(whole[:30])
    return files


def assert_one_line_and_a_hint(err: str) -> None:
    told = [line for line in err.strip().splitlines() if not line.startswith(LOADING)]
    first, *rest = told
    assert first.startswith("voiceloop: ")
    assert [line.startswith("hint: ") for line in rest] == [True], err
    assert "Traceback" not in err


LOADING = "voiceloop: loading "
"""How the line begins that tells what is being loaded."""
KINDS = ("missing", "folder", "empty", "text", "header", "no samples", "nan", "slow")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["ask", "transcribe"])
def test_a_file_that_holds_no_audio_is_refused(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bad_files(tmp_path)[kind]
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert_one_line_and_a_hint(err)
    assert path.name in err
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--preset", "statrer"], "starter"),
        (["--asr.model", "./no/such/folder"], "no/such/folder"),
        (["--llm.target", "./no/such/folder"], "no/such/folder"),
        (["--tts.voice", "en-uss"], "en-us"),
        (["--asr.engine", "wisper"], "whisper"),
        (["--out", "/no/such/folder/r.wav"], "/no/such/folder/r.wav"),
        (["--trace", "/no/such/folder/t.json"], "/no/such/folder/t.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_option_is_named_with_a_remedy(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", str(DEMO), *arguments]) == 2
    out, err = capsys.readouterr()
    assert_one_line_and_a_hint(err)
    assert named in err
    assert out == ""


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--preset", "cpu"], ", ".join(COMMANDS)),
        (["pull", "cpu"], "did you mean 'models pull'"),
        (["chat"], "did you mean 'talk'"),
        (["say", "hello", "world", "--out", "s.wav"], "'world'"),
        (["ask", "a.wav", "--pace", "realtme"], "did you mean 'realtime'"),
        (["talk", "--llm.model", "x"], "did you mean --llm.target"),
        (["serve", "--port", "99999"], "from 1 to 65535"),
        (["serve", "--port", "http"], "--port must be an integer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_or_missing_argument_is_named_with_a_remedy(
    argv: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert_one_line_and_a_hint(err)
    assert named in err
    assert out == ""


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], True),
        (["--preset", "small", "--asr.model", "starter"], True),
        (["--asr.model", str(bundled("models/starter/asr"))], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_whoever_speaks_to_the_starter_is_told_once_what_it_cannot_do(
    flags: list[str], told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = silence(tmp_path / "s.wav")
    starter = ["--llm.target", "starter", "--llm.draft", "auto"]
    assert main(["ask", str(path), "--pace", "max", "--json", *flags, *starter]) == 0
    err = capsys.readouterr().err
    assert err.count(STARTER_HEARS) == told


@pytest.mark.parametrize("kind", ["asr", "llm-target"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "config"])
def test_a_damaged_model_is_reported_and_not_crashed_on(
    kind: str, damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(bundled(f"models/starter/{kind}"), folder)
    weights = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "emptied":
        for path in folder.iterdir():
            path.unlink()
    else:
        (folder / "config.json").write_text("{ not json")
    option = "--asr.model" if kind == "asr" else "--llm.target"
    assert main(["ask", str(DEMO), option, str(folder)]) == 2
    assert_one_line_and_a_hint(capsys.readouterr().err)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_silence_and_noise_are_no_error(
    noise: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pcm = np.random.default_rng(0).normal(0, 1, 48_000).astype(np.float32) * noise
    path = wav(tmp_path / "noise.wav", pcm)
    assert main(["ask", str(path), "--pace", "max"]) == 0
    assert "no speech was heard" in capsys.readouterr().out
    assert main(["ask", str(path), "--pace", "max", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "no speech was heard" in err
    assert all(not json.loads(line)["reply"] for line in out.splitlines())


def test_a_language_model_that_goes_is_told_of_in_the_conversation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = threading.Event()

    def go(request: Request) -> None:
        gone.set()
        request.drop()

    def models(request: Request) -> None:
        request.status(503 if gone.is_set() else 200, {"data": [{"id": "small"}]})

    with Scripted(saying("Hello."), go, models=models) as server:  # the first is the warm-up
        flags = ["--llm.engine", "openai", "--llm.base-url", server.url, "--llm.target", "small"]
        assert main(["ask", str(DEMO), *flags]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    assert sum("the language model has gone" in line for line in told) == 1


def test_a_question_is_answered_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reply, trace = tmp_path / "reply.wav", tmp_path / "trace.json"
    arguments = ["--out", str(reply), "--trace", str(trace), "--json"]
    # With `auto`, a busy machine may have no draft tokens at all.
    arguments += ["--llm.num_speculative_tokens", "4"]
    assert main(["ask", str(DEMO), *arguments]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    turn = json.loads(line)
    assert list(turn) == [
        "turn",
        "transcript",
        "reply",
        "heard",
        "voice_to_voice_ms",
        "endpoint_to_sound_ms",
        "marks",
        "drafted",
        "accepted",
        "outcome",
        "incomplete",
    ]
    assert turn["outcome"] == "done"
    assert turn["heard"] == turn["reply"] != ""
    assert 0 < turn["accepted"] <= turn["drafted"]
    marks = turn["marks"]
    assert marks["prefill_start"] < marks["endpoint"]
    assert marks["first_synthesis"] < marks["reply_end"]
    assert marks["first_sound"] < marks["reply_end"] < marks["sound_end"]
    assert sf.info(reply).duration > 1.0
    assert json.loads(trace.read_text())["traceEvents"]


def test_at_pace_max_the_reply_is_the_same_and_latencies_are_null(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replies: list[str] = []
    for arguments in (
        ["--pace", "max"],
        ["--pace", "max", "--sequential"],
        ["--llm.draft", "none"],
    ):
        assert main(["ask", str(DEMO), "--json", *arguments]) == 0
        turn = json.loads(capsys.readouterr().out)
        replies.append(turn["reply"])
        if "max" in arguments:
            assert turn["voice_to_voice_ms"] is None
            assert turn["endpoint_to_sound_ms"] is None
    assert len(set(replies)) == 1


def test_a_wav_shorter_than_its_header_says_is_answered_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.wav"
    path.write_bytes(DEMO.read_bytes()[:-2000])
    assert main(["ask", str(path), "--pace", "max", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["outcome"] == "done"
    assert "short.wav" in err


def test_what_is_said_is_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.wav"
    assert main(["say", "What is the capital of France?", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["transcribe", str(out), str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.out.count(f"{out}:\nWhat is the capital of France?\n") == 2
    assert shown.err.count(STARTER_HEARS) == 1


def test_five_minutes_take_no_more_memory_than_one(tmp_path: Path) -> None:
    question, rate = sf.read(DEMO, dtype="float32")
    program = (
        "import resource, sys; from voiceloop.cli.main import main; status = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); "
        "sys.exit(status)"
    )
    pause = np.zeros(55 * rate, np.float32)
    peaks: list[int] = []
    for minutes in (1, 5):
        path = wav(tmp_path / f"{minutes}.wav", np.tile(np.append(question, pause), minutes), rate)
        done = subprocess.run(
            [sys.executable, "-c", program, "ask", str(path), "--pace", "max", "--json"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == minutes
        peaks.append(int(done.stderr.split()[-1]))
    unit = 1 if sys.platform == "darwin" else 1024
    assert (peaks[1] - peaks[0]) * unit < 18e6
