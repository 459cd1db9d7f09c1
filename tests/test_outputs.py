"""What a command reads is never written over, and what it writes appears whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voiceloop.audio.files import WavWriter
from voiceloop.cli.main import main
from voiceloop.errors import VoiceloopError
from voiceloop.outputs import keep, replacing
from voiceloop.settings import files
from voiceloop.trace.record import to_perfetto

pytestmark = pytest.mark.real


def other_names(path: Path) -> dict[str, Path]:
    """The same file, called otherwise."""
    folder, name = path.parent, path.name
    (folder / "linked").symlink_to(folder)
    (folder / f"symbolic{path.suffix}").symlink_to(path)
    os.link(path, folder / f"hard{path.suffix}")
    return {
        "itself": path,
        "spelling": folder / ".." / folder.name / name,
        "folder": folder / "linked" / name,
        "symbolic": folder / f"symbolic{path.suffix}",
        "hard": folder / f"hard{path.suffix}",
    }


KINDS = ("itself", "spelling", "folder", "symbolic", "hard")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", ["--out", "--trace"])
def test_ask_never_writes_over_its_recording(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("question.wav" if option == "--out" else "question.json")
    soundfile.write(path, np.zeros(8000, np.float32), 16_000, format="WAV")
    precious = path.read_bytes()
    name = other_names(path)[kind]
    assert main(["ask", str(path), option, str(name), "--pace", "max"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"voiceloop: {option} {name} is read by this command")
    assert "hint: " in err
    assert path.read_bytes() == precious


@pytest.mark.parametrize("kind", KINDS)
def test_replay_never_writes_over_what_it_is_given(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recording.json"
    path.write_text("precious")
    name = other_names(path)[kind]
    assert main(["replay", str(path), "--trace", str(name)]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert path.read_text() == "precious"


@pytest.mark.parametrize("command", [["ask", "q.wav"], ["replay", "recording"], ["talk"]])
def test_a_trace_is_never_written_over_the_settings(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.json"
    path.write_text("threads = 1\n")
    assert main([*command, "--config", str(path), "--trace", str(path)]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert path.read_text() == "threads = 1\n"


@pytest.mark.parametrize("suite", ["latency", "llm"])
def test_a_report_is_not_written_among_what_it_is_made_of(
    suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "report.md"
    prompts.write_text("What is new?\n")
    source = ["--input", str(tmp_path)] if suite == "latency" else ["--prompts", str(prompts)]
    assert main(["bench", suite, *source, "--report", f"{tmp_path}/x/.."]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [prompts]


@pytest.mark.parametrize("text", ["", " ", "...", "\n", "🙂"])
def test_a_text_without_words_is_one_line_and_no_file(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["say", text, "--out", str(tmp_path / "s.wav")]) == 2
    assert "nothing that can be said" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    keep([None], {"--out": tmp_path / "a.wav", "--trace": None})
    with pytest.raises(VoiceloopError, match="--out and --trace name the same file"):
        keep([], {"--out": tmp_path / "new", "--trace": tmp_path / "x" / ".." / "new"})


def test_a_trace_is_named_as_json(tmp_path: Path) -> None:
    path = tmp_path / "recording.wav"
    path.write_bytes(b"precious")
    with pytest.raises(VoiceloopError, match="not the name of a JSON file"), replacing(path):
        pytest.fail("it was opened")
    assert path.read_bytes() == b"precious"


def test_a_trace_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write("{")
        raise RuntimeError("it broke")
    assert list(tmp_path.iterdir()) == []
    with replacing(path) as file:
        file.write("{}")
        assert not path.exists()
    assert path.read_text() == "{}"


def trace(path: Path) -> None:
    with replacing(path) as file:
        file.write(json.dumps(to_perfetto([])))


@pytest.mark.parametrize(
    "precious",
    [
        '{"mine": 1}',
        "[1, 2]",
        "null",
        "not json at all",
        '{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "another"}}]}',
        '{"traceEvents": [1]}',
        '{"traceEvents": 5}',
        "[" * 100_000,
        "\x00\xff",
        " ",
    ],
)
def test_a_trace_replaces_nothing_of_anybody_elses(precious: str, tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text(precious)
    (tmp_path / "link.json").symlink_to(path)
    for name in ("package.json", "link.json"):
        with pytest.raises(VoiceloopError, match="was not made by voiceloop") as caught:
            trace(tmp_path / name)
        assert caught.value.hint
    assert path.read_text() == precious
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.json", "package.json"]


def test_a_trace_replaces_traces_and_what_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    (tmp_path / "link.json").symlink_to(path)
    trace(path)
    assert json.loads(path.read_text())["traceEvents"]
    for before in (path.read_text(), "", '{"traceEvents": []}'):
        path.write_text(before)
        trace(tmp_path / "link.json")
        assert json.loads(path.read_text())["traceEvents"] and (tmp_path / "link.json").is_symlink()


def test_replay_asks_for_another_name_before_it_reads_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"mine": 1}')
    assert main(["replay", str(tmp_path / "recording"), "--trace", str(path)]) == 2
    out, err = capsys.readouterr()
    assert not out and "was not made by voiceloop" in err and path.read_text() == '{"mine": 1}'


@pytest.mark.parametrize("how", ["symbolic", "dangling", "hard", "a file", "a pipe"])
@pytest.mark.parametrize("what", ["trace", "recording", "settings"])
def test_what_lies_where_a_file_is_made_is_not_written_to(
    what: str, how: str, tmp_path: Path
) -> None:
    made = tmp_path / {"trace": "t.json", "recording": "r.wav", "settings": "s.toml"}[what]
    part = tmp_path / f".{made.name}.{os.getpid()}.part"
    victim = tmp_path / "victim"
    victim.write_text("precious")
    match how:
        case "symbolic":
            part.symlink_to(victim)
        case "dangling":
            part.symlink_to(tmp_path / "nowhere")
        case "hard":
            os.link(victim, part)
        case "a file":
            part.write_text("old")
        case _:
            os.mkfifo(part)
    match what:
        case "trace":
            trace(made)
        case "recording":
            with WavWriter(made, 16_000) as file:
                file.write(np.zeros(100, np.float32))
        case _:
            files.keep({"llm.target": "x"}, made)
    assert made.stat().st_size and not made.is_symlink()
    assert victim.read_text() == "precious" and victim.stat().st_ino != made.stat().st_ino
    assert {one.name for one in tmp_path.iterdir()} == {made.name, "victim"}


def test_a_folder_where_a_file_is_to_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / f".t.json.{os.getpid()}.part").mkdir()
    with pytest.raises(VoiceloopError, match="cannot be written"):
        trace(tmp_path / "t.json")
