"""All that is computed for a conversation is computed on the model's own thread."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.runner import ModelThread
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models


class Forbidden(TorchDispatchMode):
    """Notes what the thread that enters it asks of torch; others see nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.asked.append(str(func))
        return func(*args, **kwargs or {})


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "repetition_penalty": 1.1}])
async def test_the_event_loop_asks_nothing_of_torch(settings: dict[str, Any]) -> None:
    config = LlmConfig(**settings)
    with ModelThread("llm", lambda: speculative(config)) as thread:
        llm: SpeculativeLlm = thread.model.result()
        with Forbidden() as mode:
            talk = llm.conversation()
            for turn in range(2):
                async with aclosing(thread.stream(talk.prefill("What time is it", turn))) as steps:
                    async for _ in steps:
                        pass
                assert talk.standing.end_probability is not None
                async with aclosing(thread.stream(talk.reply("What time is it?", turn))) as items:
                    async for _ in items:
                        assert talk.standing.end_probability is not None
                        break
                talk.heard(1)
            await thread.call(talk.close)
        assert mode.asked == []
