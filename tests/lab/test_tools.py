"""The judge of calls of own tools: what it lets pass, and what not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from msgspec import ValidationError

from lab.tools.judge import SpokenRequest, read, wrong
from lab.tools.own import OWN
from voiceloop.tools.toolbox import Toolbox
from voiceloop.types import ToolCall

pytestmark = pytest.mark.pure

FILE = Path(__file__).parents[2] / "lab" / "tools" / "requests.toml"
LISTED = read(tomllib.loads(FILE.read_text(encoding="utf-8")))


def test_thirty_requests_to_six_tools_and_thirty_sentences_of_chatter() -> None:
    requests = [one for one in LISTED if one.call]
    assert len(requests) == 30 and len(LISTED) == 60
    assert len({one.say for one in LISTED}) == 60
    tools = {one.name: one for one in OWN}
    assert {one.call for one in requests} == tools.keys() and len(tools) == 6
    for one in requests:
        assert one.arguments.keys() <= tools[one.call].read({**PLAIN, **one.arguments}).keys()


PLAIN = {"room": "kitchen", "on": True, "degrees": 20, "city": "x", "item": "x", "what": "x"} | {
    "to": "x",
    "text": "x",
}


def called(name: str, **arguments: object) -> ToolCall:
    return ToolCall(1, "c", name, arguments)


LIGHT = SpokenRequest("", "set_light", {"room": "kitchen", "on": False})


@pytest.mark.parametrize(
    ("request_", "calls", "fault"),
    [
        (LIGHT, [called("set_light", room="Kitchen", on=False)], ""),
        (LIGHT, [called("set_light", room="kitchen", on="false")], ""),
        (LIGHT, [called("set_light", room="kitchen", on=True)], "on is True"),
        (LIGHT, [called("set_light", room="hall")], "room is 'hall', on is None"),
        (LIGHT, [], "it calls nothing"),
        (LIGHT, [called("weather")], "it calls weather"),
        (LIGHT, [called("set_light")] * 2, "it makes 2 calls"),
        (SpokenRequest("", "f", {"n": 3}), [called("f", n="3.0")], ""),
        (SpokenRequest("", "f", {"n": 3}), [called("f", n="three")], "n is 'three'"),
        (SpokenRequest("Hello"), [], ""),
        (SpokenRequest("Hello"), [called("weather")], "it calls weather"),
    ],
)
def test_a_call_is_judged_by_its_name_and_its_arguments(
    request_: SpokenRequest, calls: list[ToolCall], fault: str
) -> None:
    assert wrong(request_, calls) == fault


def test_a_wrong_list_is_refused() -> None:
    with pytest.raises(ValidationError):
        read({"request": [{"say": "x", "cal": "y"}], "chatter": []})


def test_the_tools_can_be_offered() -> None:
    assert len(Toolbox(OWN)) == 6
