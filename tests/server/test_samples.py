"""`GET /v1/voices/NAME`: how a voice sounds, for those who may know."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest

from tests.server.serving import Serving, serving

pytestmark = pytest.mark.real

KEY = "k" * 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("server"), VOICELOOP_API_KEY=KEY) as server:
        yield server


def get(server: Serving, voice: str, key: str = KEY, **headers: str) -> tuple[int, bytes]:
    shown = {"Authorization": f"Bearer {key}"} if key else {}
    asked = urllib.request.Request(f"{server.page}/v1/voices/{voice}", headers=shown | headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert answer.headers["Content-Type"] == "audio/wav"
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_voice_is_a_wav_of_a_sentence_in_its_language(server: Serving) -> None:
    sizes = set[int]()
    for voice in ("en-us", "de", "en-us+f3", "English (America)"):
        status, body = get(server, quote(voice, safe=""))
        assert status == 200
        with wave.open(io.BytesIO(body)) as file:
            assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
            pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            assert 0.5 < len(pcm) / file.getframerate() < 10
        assert np.abs(pcm).max() > 3000
        sizes.add(len(body))
    assert len(sizes) > 2


def test_it_is_made_once(server: Serving) -> None:
    """espeak-ng's flutter would make it another one."""
    with ThreadPoolExecutor(3) as many:
        found = {body for _, body in many.map(lambda _: get(server, "fr"), range(3))}
    assert len(found) == 1


@pytest.mark.parametrize("voice", ["nosuch", "", "..%2f..%2fetc%2fpasswd", "%00", "%ff", "a/b"])
def test_a_voice_that_there_is_not(server: Serving, voice: str) -> None:
    status, body = get(server, voice)
    assert status == 404
    assert len(body.decode().splitlines()) == 1


def test_who_may_not_converse_hears_nothing(server: Serving) -> None:
    assert get(server, "en-us", key="")[0] == 401
    assert get(server, "en-us", key="x" * 40)[0] == 401
    assert get(server, "en-us", Origin="https://elsewhere.example")[0] == 403
