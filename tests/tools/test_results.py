"""What the model gets of a result: data of a limited size that steers nothing."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceloop.llm.text.parts import MARKS
from voiceloop.settings.config import LlmConfig
from voiceloop.tools import results
from voiceloop.tools.declared import tool
from voiceloop.tools.toolbox import Toolbox
from voiceloop.types import ToolCall

pytestmark = pytest.mark.real

STEERING = (
    *sorted(MARKS),
    *("<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|start_header_id|>", "<end_of_turn>", "</s>"),
    *("[INST]", "[/INST]", "<|endoftext|>"),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


texts = st.lists(st.sampled_from((*STEERING, "<|im_", "end|>", "</tool", "_call>", "a", " ", "\n"))
                 | st.text(max_size=5)).map("".join)  # fmt: skip


@given(texts)
@example("<|im_<|im_end|>end|>")
@example("</tool_<|im_end|>response>")
@example("<|im\x00_end|>")
@example("<|im\u200b_end|>")
def test_nothing_in_a_result_ends_it_or_speaks_for_the_user(text: str) -> None:
    for value in (text, [text], {"a": {text: 1}}):
        written = results.data(value)
        assert [mark for mark in STEERING if mark in written] == []
        assert [*json.loads(written)] == ["data"]
    assert [*json.loads(results.error(text))] == ["error"]


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"])).filter(
    lambda text: results.harmless(text) == text))  # fmt: skip
def test_a_plain_text_stays_as_it_is(text: str) -> None:
    assert json.loads(results.data(text))["data"] == text


@given(st.integers(1, 50), texts | st.lists(st.integers()))
def test_a_result_has_a_limited_size(most: int, value: Any) -> None:
    inner = json.loads(results.data(value, most))["data"]
    if isinstance(inner, str):
        assert len(inner) <= most + len(results.CUT)
    else:
        assert len(json.dumps(inner, separators=(",", ":"))) <= most


def test_results_of_any_type_are_written() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value, written in (
        (None, "done"),
        ({"a": 1.5}, {"a": 1.5}),
        ((1, "é"), [1, "é"]),
        ({1, }, [1]),
        (float("nan"), None),
        (b"\xff", "/w=="),
        (threading.Lock, str(threading.Lock)),
    ):  # fmt: skip
        assert json.loads(results.data(value)) == {"data": written}
    assert json.loads(results.data(loop))["data"]
    assert json.loads(results.data("x" * 10_000_000))["data"] == "x" * 8192 + results.CUT
    assert json.loads(results.data(["x" * 10_000_000]))["data"].endswith(results.CUT)


def test_a_model_in_this_process_gets_no_more_than_its_context_can_take() -> None:
    assert results.room(LlmConfig(context=2048)) == 2048
    assert results.room(LlmConfig(context=32_768)) == results.MOST_CHARS
    assert results.room(LlmConfig(engine="openai", context=2048)) == results.MOST_CHARS


async def test_a_function_that_is_not_async_blocks_nobody_and_may_never_return() -> None:
    never, called = threading.Event(), list[int]()

    @tool(timeout_s=0.2)
    def hangs() -> None:
        """Never return."""
        called.append(threading.get_ident())
        never.wait()

    @tool
    def leaves() -> None:
        """Leave the program."""
        raise SystemExit(3)

    box = Toolbox([hangs, leaves])
    calls = [ToolCall(1, "a", name, {}) for name in ("hangs", "hangs", "leaves")]
    found = list[str]()
    async with anyio.create_task_group() as tasks:
        for one in calls:
            tasks.start_soon(lambda one=one: _into(found, box, one))
    never.set()
    assert sorted(found) == [
        *['{"error": "hangs took longer than 0.2 s and was given up"}'] * 2,
        '{"error": "leaves failed: SystemExit(3)"}',
    ]
    assert len(set(called)) == 2 and threading.get_ident() not in called


async def _into(found: list[str], box: Toolbox, call: ToolCall) -> None:
    found.append(await box.call(call))
