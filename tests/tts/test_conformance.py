"""What every synthesizer promises, asked of each of them: see docs/engines.md.

An engine of your own passes it too: give it a line in `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.tts.piper_voices import write_piper_voice
from tests.tts.saying import clause, joined, say
from voiceloop.catalog.names import KOKORO, PIPER
from voiceloop.catalog.store import ModelStore
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.languages.en import ENGLISH
from voiceloop.runner import ModelThread
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.coqui import coqui
from voiceloop.tts.espeak import espeak
from voiceloop.tts.kokoro import kokoro
from voiceloop.tts.normalize import normalize
from voiceloop.tts.piper import piper
from voiceloop.types import Clause, Pcm, SpeechChunk, TokenBurst

pytestmark = pytest.mark.models

SHORT = "Hello there."
LONG = "The quick brown fox jumps over the lazy dog, and then it sleeps until the sun comes up."
UNSAYABLE = ("", " ", "...", "?!", "😀", "\x00\x01", "—", "\ud800")
ODD = (
    "a",
    "I.",
    "x" * 300,
    "naïve 日本語 café Straße Привет",
    "to be \x00 or \ud800 not [[h@l'oU]] <speak>to</speak> be",
    "one, two; three: four! five? six.",
    "'quoted' (bracketed) well-known e-mail",
    " ".join(["word"] * 120) + ".",
)


@dataclass(frozen=True)
class Case:
    """An engine, and what is peculiar to it."""

    make: Callable[[pytest.FixtureRequest, float], Tts]
    """Of a speed."""
    streams: bool = True
    """A long clause comes in several chunks."""
    varies: float = 0.0
    """By this share the same clause may be longer or shorter when it is spoken again."""


def _of_folder(engine: str, model: Path, speed: float) -> Tts:
    make = {"coqui": coqui, "kokoro": kokoro, "piper": piper}[engine]
    return make(TtsConfig(engine=engine, model=str(model), speed=speed))


def _piper(speakers: Sequence[str]) -> Callable[[pytest.FixtureRequest, float], Tts]:
    def make(request: pytest.FixtureRequest, speed: float) -> Tts:
        folder: Path = request.getfixturevalue("piper_folder")
        file = folder / f"voice{len(speakers)}.onnx"
        if not file.exists():
            write_piper_voice(file, speakers=speakers)
        with pytest.MonkeyPatch.context() as patch:  # converted voices are none of the user's
            patch.setenv("VOICELOOP_MODELS", str(folder / "models"))
            return _of_folder("piper", file, speed)

    return make


def _coqui(request: pytest.FixtureRequest, speed: float) -> Tts:
    return _of_folder("coqui", request.getfixturevalue("voice"), speed)


def _xtts(request: pytest.FixtureRequest, speed: float) -> Tts:
    return _of_folder("coqui", request.getfixturevalue("xtts_voice"), speed)


def _kokoro(request: pytest.FixtureRequest, speed: float) -> Tts:
    return _of_folder("kokoro", request.getfixturevalue("kokoro_folder"), speed)


ENGINES = {
    # The library's pitch flutter runs on from clause to clause.
    "espeak": Case(lambda _, speed: espeak(TtsConfig(speed=speed)), streams=False, varies=0.03),
    "piper": Case(_piper(())),
    "piper-speakers": Case(_piper(("ann", "bob"))),
    "coqui-vits": Case(_coqui),
    "coqui-xtts": Case(_xtts),
    # It makes the sound of a whole text at once.
    "kokoro": Case(_kokoro, streams=False),
}
if ModelStore().find(PIPER):
    ENGINES["piper-pulled"] = Case(lambda _, speed: piper(TtsConfig(engine="piper", speed=speed)))
if ModelStore().find(KOKORO):
    ENGINES["kokoro-pulled"] = Case(
        lambda _, speed: kokoro(TtsConfig(engine="kokoro", speed=speed)), streams=False
    )
CASES = [
    # It takes a second for two of sound.
    pytest.param(name, marks=pytest.mark.slow) if name == "kokoro-pulled" else name
    for name in ENGINES
]


@pytest.fixture(scope="module")
def piper_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("piper")


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def engine(case: Case, request: pytest.FixtureRequest) -> Tts:
    return case.make(request, 1.0)


def check(engine: Tts, what: Clause, chunks: list[SpeechChunk]) -> None:
    """What holds of the chunks of any clause."""
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    at = 0
    for chunk in chunks:
        assert (chunk.turn, chunk.clause, chunk.rate) == (what.turn, what, engine.rate)
        assert chunk.pcm.dtype == np.float32 and chunk.pcm.ndim == 1
        assert chunk.start == at
        assert len(chunk.pcm) or chunk.last
        at += len(chunk.pcm)
        # A word is told with the chunk that it ends in.
        for word in chunk.words:
            assert 0 <= word.start <= word.end <= at
            assert word.end >= chunk.start or chunk.last
    whole = joined(chunks)
    assert np.isfinite(whole).all() and np.abs(whole).max(initial=0.0) <= 1.0
    words = [word for chunk in chunks for word in chunk.words]
    assert [word.span for word in words] == list(range(len(what.spans)))
    assert all(a.end <= b.start for a, b in pairwise(words)) or not len(whole)


@pytest.mark.parametrize(
    ("text", "last"),
    [(SHORT, False), (LONG, False), *((text, True) for text in (SHORT, LONG, *ODD))],
)
def test_a_clause_is_told_whole_in_order(engine: Tts, text: str, *, last: bool) -> None:
    what = clause(text, last=last)
    chunks = say(engine, what)
    check(engine, what, chunks)
    assert len(joined(chunks)) > 0.02 * engine.rate


@pytest.mark.parametrize("text", UNSAYABLE)
def test_what_cannot_be_said_is_one_chunk_without_audio(engine: Tts, text: str) -> None:
    what = clause(text)
    (chunk,) = say(engine, what)
    check(engine, what, [chunk])
    assert not len(chunk.pcm)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text("abcde'-é日", min_size=1, max_size=8), min_size=1, max_size=25))
def test_every_word_is_timed_once_in_order_where_it_ends(engine: Tts, words: list[str]) -> None:
    said = clause(" ".join(words), last=False)
    chunks = say(engine, said)
    times = [word for chunk in chunks for word in chunk.words]
    assert [word.span for word in times] == list(range(len(said.spans)))
    flat = [time for word in times for time in (word.start, word.end)]
    assert [0, *flat, len(joined(chunks))] == sorted([0, *flat, len(joined(chunks))])
    for i, chunk in enumerate(chunks):
        end = chunk.start + len(chunk.pcm)
        assert all(word.end <= end for word in chunk.words)
        assert all(word.end > end for later in chunks[i + 1 :] for word in later.words)


@pytest.mark.parametrize(("text", "ms"), [("so, as I said,", 150), ("so it is.", 300)])
def test_a_pause_by_its_mark_follows_a_clause_that_goes_on(
    case: Case, engine: Tts, text: str, ms: int
) -> None:
    over, on = (joined(say(engine, clause(text, last=last))) for last in (True, False))
    length = round(ms * engine.rate / 1000)
    assert not on[len(on) - length :].any()
    _same(case, on[: len(on) - length], over)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("Û3I")  # its first word is over before there is any sound
@given(st.text(max_size=40))
def test_any_text_is_spoken_or_passed_over(engine: Tts, text: str) -> None:
    said = normalize(text, language(engine.language())).text
    for what in (clause(text), clause(said, last=False)):
        check(engine, what, say(engine, what))


def test_a_reply_is_spoken_as_it_is_cut(engine: Tts) -> None:
    cutter = ClauseCutter(0, ENGLISH)
    text = "Sure. It costs $21.50, well-known since 1980 — see www.example.com/a. Anything else?"
    cut = [*cutter.feed(TokenBurst(0, (1,), text, 0, 0, (len(text),))), *cutter.flush()]
    assert len(cut) > 1
    for what in cut:
        check(engine, what, say(engine, what))


def test_a_long_clause_streams(case: Case, engine: Tts) -> None:
    if not case.streams:
        pytest.skip("it makes the sound of a text at once")
    chunks = say(engine, clause(LONG))
    assert len(chunks) > 1
    assert len(chunks[0].pcm) < 0.5 * len(joined(chunks))


def test_it_stops_within_one_chunk(case: Case, engine: Tts) -> None:
    """What has been closed leaves nothing behind: the next clause sounds as it would alone."""
    alone = joined(say(engine, clause(SHORT)))
    for stop in range(3):
        steps = engine.synthesize(clause(LONG))
        for _ in range(stop):
            next(steps)
            if not case.streams:
                break
        steps.close()
        assert next(steps, None) is None
        _same(case, joined(say(engine, clause(SHORT))), alone)


def test_two_clauses_may_be_spoken_by_turns(case: Case, engine: Tts) -> None:
    alone = [joined(say(engine, clause(text))) for text in (LONG, SHORT)]
    given: list[list[SpeechChunk]] = [[], []]
    steps = [engine.synthesize(clause(text)) for text in (LONG, SHORT)]
    for pair in zip_longest(*steps):
        for chunks, chunk in zip(given, pair, strict=True):
            if chunk is not None:
                chunks.append(chunk)
    for spoken, expected in zip(given, alone, strict=True):
        _same(case, joined(spoken), expected)


def test_the_same_clause_sounds_the_same(
    case: Case, engine: Tts, request: pytest.FixtureRequest
) -> None:
    first, again = (joined(say(engine, clause(LONG))) for _ in range(2))
    _same(case, first, again)
    _same(case, first, joined(say(case.make(request, 1.0), clause(LONG))))


def test_speed_makes_speech_shorter(case: Case, request: pytest.FixtureRequest) -> None:
    slow, fast = (joined(say(case.make(request, speed), clause(LONG))) for speed in (0.5, 2.0))
    assert 1.5 < len(slow) / len(fast) < 7


def test_a_clause_alone_may_be_slower_or_faster(case: Case, engine: Tts) -> None:
    if not engine.paces:
        pytest.skip("its pace is fixed")
    usual = len(joined(say(engine, clause(LONG))))
    for speed in (0.7, 1.6):
        chunks = say(engine, clause(LONG), speed=speed)
        check(engine, clause(LONG), chunks)
        assert len(joined(chunks)) == pytest.approx(usual / speed, rel=0.2)
    again = len(joined(say(engine, clause(LONG))))
    assert again == pytest.approx(usual, rel=case.varies + 1e-6), "nothing of it stays"


def test_rate_and_voice_are_declared(engine: Tts) -> None:
    assert 8_000 <= engine.rate <= 48_000
    assert engine.name
    assert engine.voice in engine.voices()
    assert len(set(engine.voices())) == len(engine.voices())


def test_every_voice_speaks_and_knows_its_language(engine: Tts) -> None:
    named = engine.voices()
    for voice in [*named[:3], *named[-3:]]:
        engine.check_voice(voice)
        assert engine.language(voice)
        what = clause(SHORT)
        check(engine, what, say(engine, what, voice))
    assert engine.language() == engine.language(engine.voice)


def test_another_voice_is_for_its_clause_alone(case: Case, engine: Tts) -> None:
    other = next((one for one in engine.voices()[::-1] if one != engine.voice), None)
    if other is None:
        pytest.skip("it has but one voice")
    before = joined(say(engine, clause(LONG)))
    there = joined(say(engine, clause(LONG), other))
    assert len(there) != len(before) or not np.allclose(there, before, atol=1e-3)
    _same(case, joined(say(engine, clause(LONG))), before)


def test_an_unknown_voice_is_an_error_that_names_the_nearest(engine: Tts) -> None:
    wrong = f"{engine.voice}x"
    with pytest.raises(ConfigError) as caught:
        engine.check_voice(wrong)
    assert wrong in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_speaks_on_the_thread_of_its_runner(case: Case, engine: Tts) -> None:
    """Loaded on one thread, warmed up on another, spoken with on a third."""
    expected = joined(say(engine, clause(LONG)))
    with ModelThread("tts", lambda: None) as thread:
        chunks = [chunk async for chunk in thread.stream(engine.synthesize(clause(LONG)))]
    check(engine, clause(LONG), chunks)
    _same(case, joined(chunks), expected)


def _same(case: Case, a: Pcm, b: Pcm) -> None:
    if case.varies:
        assert abs(len(a) - len(b)) <= case.varies * len(b)
    else:
        assert np.array_equal(a, b)
