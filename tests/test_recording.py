"""Recordings: whatever happens in a conversation, its folder leads to the same decisions."""

from __future__ import annotations

import json
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from threading import Event as Gate

import anyio
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.dialogue.test_core import converse
from tests.dialogue.world import CALIBRATION
from tests.recordings import Recorded, record
from tests.support.scenario import Scenario, ScriptedReply, UserSound, load_scenario
from voiceloop.audio.devices import FileMicrophone, FilteredMicrophone, Tap
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.cli.main import main
from voiceloop.dialogue import inputs
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.recording import format as form
from voiceloop.recording.format import veiled
from voiceloop.recording.recording import (
    MOST_WAITING,
    TOO_SLOW,
    RecordingFolder,
    RecordingWriter,
    Surroundings,
    prepare,
)
from voiceloop.replay.recorded import compared, differences, shown
from voiceloop.session import Session
from voiceloop.settings.config import ServerConfig, assembled, given_in, toml
from voiceloop.types import AudioFrame, Pcm, TurnTrace

pytestmark = pytest.mark.virtual

FOLDER = Path(__file__).parent / "data" / "scenarios"
SCENARIOS = sorted(FOLDER.glob("*.toml"))
LONG = "The sky is blue, and it goes on and on and on, over the hills and far away, for ever."
SKY = Scenario(
    full_duplex=True,
    user=(UserSound("Tell me about the sky", at=0.5),),
    reply=(ScriptedReply("Tell me about the sky", LONG), ScriptedReply(None, "The sea is deep.")),
    silence_s=6.0,
)
"""A question with a long answer, and time to do something meanwhile."""


def outcomes(folder: Path) -> list[str]:
    return [trace.outcome for trace in shown(folder).traces]


@pytest.fixture(scope="module")
def sky(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A recording that no test may change."""
    return record(tmp_path_factory.mktemp("recordings"), SKY)


@pytest.fixture
def copy(sky: Recorded, tmp_path: Path) -> Path:
    """A copy of a recording, to be damaged."""
    return Path(shutil.copytree(sky.folder, tmp_path / "copy"))


# The same decisions -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_recorded_scenario_is_decided_as_before(path: Path, tmp_path: Path) -> None:
    """Among them are interruptions, a cough, a dropped guess, a failure, a timer and a tool."""
    scenario = load_scenario(path)
    made = record(tmp_path, scenario)
    assert not made.notices
    assert not differences(made.folder)
    assert outcomes(made.folder) == [turn.outcome for turn in scenario.expect.turn]
    assert len(shown(made.folder).shown) == len(made.events)


async def cancel(session: Session) -> None:
    await anyio.sleep(4.0)
    assert session.cancel() == 1


@given(st.integers(0, 2**32))
def test_whatever_is_reported_is_read_as_it_was(seed: int) -> None:
    world = converse(seed, 100)
    start = form.start_of(ConversationState(world.settings, world.abilities, {"en": CALIBRATION}))
    calls = [
        form.CoreCall(now, form.tagged(told), [form.tagged(action) for action in answer])
        for (told, now), answer in zip(world.told, world.answers, strict=True)
    ]
    read = [msgspec.json.decode(form.encoded(call), type=form.CoreCall) for call in calls]
    start = msgspec.json.decode(form.encoded(start), type=form.CoreStart)
    assert not [*compared(start, [(call, form.report_in(call.report)) for call in read], receive)]


# Other decisions ----------------------------------------------------------------------------------


def hasty(state: ConversationState, report: inputs.Input, now: float) -> list[Action]:
    """A core that ends turns sooner."""
    policy = structs.replace(state.settings.policy, hangover_ms=300)
    state.settings = replace(state.settings, policy=policy)
    return receive(state, report, now)


def broken(state: ConversationState, report: inputs.Input, now: float) -> list[Action]:
    """A core that fails when a reply begins to sound."""
    if isinstance(report, inputs.Sounding):
        raise KeyError("the turn")
    return receive(state, report, now)


def test_a_core_that_decides_otherwise_is_told_apart(sky: Recorded) -> None:
    found = differences(sky.folder, hasty)[0]
    assert (found.turn, found.expected, found.was) == (0, "nothing", "EndTurn()")
    assert found.key.endswith("s, on SilenceLasts")
    assert 2.3 <= float(found.key.split()[0]) < 2.4, "the user falls silent at 2 s"


def test_a_core_that_failed_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup):
        record(tmp_path, SKY, core=broken)
    (folder,) = tmp_path.iterdir()
    assert not differences(folder, broken)
    assert differences(folder)[0].expected == """Raised(error="KeyError('the turn')")"""


def test_the_command_tells_whether_decisions_differ(
    sky: Recorded, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(sky.folder)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "every decision is as recorded"
    assert told[-2].startswith("turn 1  done           500 ms  you: Tell me about the sky  loop: ")
    lines = (copy / form.REPORTS).read_text().splitlines()
    changed = [line.replace('{"Commit":{"turn":1}}', '{"Drop":{"turn":1}}') for line in lines]
    (copy / form.REPORTS).write_text("\n".join([*changed, ""]))
    assert main(["replay", str(copy)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[-3].startswith("not as expected: turn 1: 2.5")
    assert told[-2:] == ["  expected: 'Drop(turn=1)'", "  was:      'Commit(turn=1)'"]
    assert main(["replay", "--json", str(copy)]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["kind"], last["was"]) == ("difference", "Commit(turn=1)")


def test_json_and_the_trace_hold_the_same_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, trace = record(tmp_path, load_scenario(FOLDER / "tool.toml")), tmp_path / "t.json"
    assert main(["replay", str(made.folder), "--json", "--trace", str(trace)]) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["what"] for record in plain if record.get("what") == "called"] == ["called"]
    assert plain[-1]["heard"] == "Let me see. It is five past two."
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"turn 1", "first_sound", "call get_time"} <= names


# What is in the folder ----------------------------------------------------------------------------


def samples_in(path: Path, rate: int = SPEECH_RATE) -> Pcm:
    with AudioFile(path, rate) as file:
        assert file.info.rate == rate
        return np.concatenate([*file.blocks()])


def test_the_sound_is_the_microphones_to_the_bit(tmp_path: Path) -> None:
    frames: list[AudioFrame] = []

    def around(inner: Surroundings) -> Surroundings:
        return inner._replace(microphone=FilteredMicrophone(inner.microphone, Tap(frames.append)))

    made = record(tmp_path, SKY, around=around)
    heard = np.concatenate([frame.pcm for frame in frames])
    assert (samples_in(made.folder / form.MICROPHONE) == heard).all()


def test_the_reply_is_where_it_sounded(tmp_path: Path) -> None:
    made = record(tmp_path, SKY, requests=cancel)
    (trace,) = [event for event in made.events if isinstance(event, TurnTrace)]
    played = np.flatnonzero(samples_in(made.folder / form.SPEAKER))
    assert played[0] / SPEECH_RATE == pytest.approx(trace.marks["first_sound"], abs=1e-3)
    assert played[-1] / SPEECH_RATE == pytest.approx(trace.marks["sound_end"], abs=1e-2)
    assert trace.marks["sound_end"] == pytest.approx(4.0, abs=0.1), "it was cut off"


def test_it_is_the_users_alone(sky: Recorded) -> None:
    assert stat.S_IMODE(sky.folder.stat().st_mode) == 0o700
    files = sorted(sky.folder.iterdir())
    assert {file.name for file in files} == {
        *(form.ABOUT, form.SETTINGS, form.REPORTS, form.EVENTS, form.MICROPHONE, form.SPEAKER)
    }
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_its_settings_can_be_used(sky: Recorded) -> None:
    path = sky.folder / form.SETTINGS
    assert assembled(given_in(toml(path), path)) == SKY.config


SECRET = "s3cret-9f8e7d6c"


def test_no_secret_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VOICELOOP_LLM_KEY", "OPENAI_API_KEY", "VOICELOOP_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    llm = structs.replace(
        SKY.config.llm,
        base_url=f"https://me:{SECRET}@example.org:8080/v1?key={SECRET}#{SECRET}",
        options={"key": SECRET},
    )
    server = ServerConfig(store=f"redis://:{SECRET}@example.org")
    config = structs.replace(SKY.config, llm=llm, server=server)
    made = record(tmp_path, structs.replace(SKY, config=config))
    assert not made.notices
    for file in made.folder.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name
    assert veiled(config).llm.base_url == "https://example.org:8080/v1"


def test_no_recording_overwrites_another(tmp_path: Path) -> None:
    for name in ("now", "now-2", "now-3"):
        with RecordingFolder(tmp_path, "now") as folder:
            assert folder.path == tmp_path / name


# A recording that ends too early ------------------------------------------------------------------


def ended(made: Recorded, why: str) -> None:
    """Check that the recording ended, and the conversation did not."""
    assert made.notices == [f"the recording of this conversation has ended: {why}"]
    traces = [event for event in made.events if isinstance(event, TurnTrace)]
    assert [trace.outcome for trace in traces] == ["done"]
    assert not differences(made.folder)


def test_a_full_disk_ends_the_recording_and_not_the_talk(small_disk: Path) -> None:
    ended(record(small_disk, SKY), "it cannot be written: No space left on device")
    (folder,) = small_disk.iterdir()
    assert len(samples_in(folder / form.MICROPHONE)) > SPEECH_RATE


def test_a_recording_that_is_too_large_ends(tmp_path: Path) -> None:
    made = record(tmp_path, SKY, most_bytes=300_000)
    ended(made, "it has reached its maximum size")
    files = [*made.folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < 310_000
    assert len(samples_in(made.folder / form.MICROPHONE)) > SPEECH_RATE


def test_where_nothing_can_be_written_nothing_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.write_text("a file")
    with pytest.raises(VoiceloopError, match="nothing can be recorded in"):
        prepare(gone)
    for command in ("talk", "serve"):
        assert main([command, "--record", str(gone)]) == 2
        assert f"voiceloop: nothing can be recorded in {gone}" in capsys.readouterr().err
    writer = RecordingWriter(gone, "now")
    writer.start()
    writer.finish()
    assert writer.failure == "it cannot be written: Not a directory"


def test_a_disk_that_is_too_slow_ends_the_recording(tmp_path: Path) -> None:
    writer, reached, free = RecordingWriter(tmp_path, "now"), Gate(), Gate()

    def stall(folder: RecordingFolder) -> None:
        folder.append(form.EVENTS, b"{}\n")
        reached.set()
        free.wait()

    writer.start()
    writer.put(stall)
    reached.wait()
    for _ in range(MOST_WAITING + 2):
        writer.put(lambda folder: folder.append(form.EVENTS, b"late\n"))
    assert writer.failure == TOO_SLOW
    free.set()
    writer.finish()
    assert (tmp_path / "now" / form.EVENTS).read_bytes() == b"{}\n"


def test_what_cannot_be_written_ends_the_recording(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path, "now")
    writer.start()
    writer.put(lambda folder: folder.append(form.EVENTS, form.encoded(object())))
    writer.finish()
    assert writer.failure.startswith("NotImplementedError")


# Reading ------------------------------------------------------------------------------------------


@given(share=st.floats(0.02, 1.0))
def test_what_was_cut_off_is_read_up_to_there(
    sky: Recorded, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    for name in (form.REPORTS, form.EVENTS):
        data = (sky.folder / name).read_bytes()
        (folder / name).write_bytes(data[: max(data.index(b"\n") + 1, round(share * len(data)))])
    assert not differences(folder)
    assert len(shown(folder).shown) <= len(sky.events)


def test_a_sound_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    """Its header says that its length is not known."""
    folder, pcm = RecordingFolder(tmp_path, "now"), np.linspace(-1, 1, 16_000, dtype=np.float32)
    folder.put(form.MICROPHONE, SPEECH_RATE, 0, pcm, floats=True)
    folder.put(form.SPEAKER, 24_000, 8_000, pcm)
    with (folder.path / form.MICROPHONE).open("ab") as file:
        file.write(b"\0\0")  # the half of a sample
    assert (samples_in(folder.path / form.MICROPHONE) == pcm).all()
    spoken = samples_in(folder.path / form.SPEAKER, 24_000)
    assert len(spoken) == 24_000 and not spoken[:8_000].any()
    with FileMicrophone(folder.path / form.MICROPHONE) as microphone:
        assert not microphone.info.warning
    folder.__exit__()
    assert (samples_in(folder.path / form.MICROPHONE) == pcm).all()


DAMAGES: dict[str, tuple[str, bytes]] = {
    "no JSON": (form.REPORTS, b"{}}\n"),
    "not the start": (form.REPORTS, b"{}\n"),
    "nothing": (form.REPORTS, b""),
    "another format": (form.REPORTS, b'"format":1'),
    "an unknown event": (form.EVENTS, b'{"at":1,"event":{"Nonsense":{}}}\n'),
    "two events": (form.EVENTS, b'{"at":1,"event":{"Notice":{"text":"a"},"More":{}}}\n'),
    "an unknown mark": (
        form.EVENTS,
        b'{"at":1,"event":{"TurnTrace":{"turn":1,"marks":{"x":1}}}}\n',
    ),
    "an unknown lane": (
        form.EVENTS,
        b'{"at":1,"event":{"TurnTrace":{"turn":1,"spans":'
        b'[{"lane":"x","name":"y","start":1,"end":2}]}}}\n',
    ),
    "depth": (form.EVENTS, b'{"at":1,"event":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}\n"),
    "no text": (form.EVENTS, b"\xff\n"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_recording_is_one_line_and_a_hint(
    damage: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data = DAMAGES[damage]
    if damage == "another format":
        data = (copy / name).read_bytes().replace(data, b'"format":2', 1)
    (copy / name).write_bytes(data)
    assert main(["replay", str(copy)]) == 2
    told = capsys.readouterr()
    first, second = told.err.splitlines()
    assert first.startswith(f"voiceloop: {copy / name}")
    assert second.startswith("hint: name a folder that")
    assert not told.out


def test_a_report_that_does_not_fit_its_type_is_refused(copy: Path) -> None:
    lines = (copy / form.REPORTS).read_bytes().splitlines(keepends=True)
    for report in (b'{"Frame":{"end":"x"}}', b'{"Detected":{"event":{"type":"X"},"at":1}}', b"{}"):
        line = b'{"at":9.5,"report":' + report + b',"actions":[]}\n'
        (copy / form.REPORTS).write_bytes(b"".join([*lines, line]))
        with pytest.raises(ConfigError, match=r"reports\.jsonl is damaged"):
            differences(copy)


@pytest.mark.parametrize(
    "actions",
    [
        b"[{}]",
        b'[{"A":{"turn":[1]}}]',
        b'[{"A":{},"B":{}}]',
        b'[{"Begin":{"turn":[1],"number":1}}]',
    ],
)
def test_actions_that_never_were_are_differences(actions: bytes, copy: Path) -> None:
    start = (copy / form.REPORTS).read_bytes().splitlines(keepends=True)[0]
    call = b'{"at":0.5,"report":{"Settled":{}},"actions":' + actions + b"}\n"
    (copy / form.REPORTS).write_bytes(start + call)
    assert [one.was for one in differences(copy)] == ["ReadOpening(number=1, rewrite=None)"]


def test_other_folders_are_one_line_and_a_hint(
    sky: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path)]) == 2
    assert "is no recording: it has no reports.jsonl\nhint: name a folder that" in (
        capsys.readouterr().err
    )
    assert main(["replay", str(sky.folder.parent)]) == 2
    assert f"hint: name one of those in it, such as {sky.folder}" in capsys.readouterr().err
    for path in (SCENARIOS[0], tmp_path / "absent", Path("/dev/zero")):
        assert main(["replay", str(path)]) == 2
        assert f"{path} is no recording: " in capsys.readouterr().err
