"""Captured rounds say what plain ones say, by work that is the same each time and waits for
nothing: what that promises of a GPU is shown without one."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from tests.llm.conftest import CONTEXT, KINDS, WINDOWED, Workshop, build_model
from tests.llm.replies import (
    GREEDY,
    MODE_NAMES,
    MODES,
    PENALISED,
    Anew,
    captured,
    prompts,
    say,
    speculator,
)
from voiceloop.llm.decode.captured import LENGTHS, MOST, CudaGraphs, FixedRound, PlacedModel, Round
from voiceloop.llm.model.cache import Slots
from voiceloop.llm.model.decoder import decoder
from voiceloop.llm.rules.sampling import Sampling

pytestmark = pytest.mark.models


# ---- conversations


@pytest.mark.parametrize(
    "count", [pytest.param(15, id="quick"), pytest.param(125, id="all", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("draft", ["unsteady", "same", "random", "none"])
def test_conversations_go_as_they_go_without(workshop: Workshop, draft: str, count: int) -> None:
    """Whatever is said, cancelled, revised and heard."""
    rng, replays, compared = random.Random(draft), Anew.replays, 0
    call = workshop.tokenizer.convert_tokens_to_ids("<tool_call>")
    texts = ["What is", "What is the capital of France?", "Tell me.", "No", "🌍 " * 9]
    for case in range(count):
        models = workshop.decoder(), workshop.draft(draft)
        sampling = [GREEDY, PENALISED, Sampling(0.9, seed=case)][case % 3]
        rounds = captured(*models, sampling)
        plain, made = (
            workshop.conversation(
                *models, sampling, length=rng.choice(LENGTHS), max_new_tokens=20, captured=way
            )
            for way in (None, rounds)
        )
        for turn in itertools.chain.from_iterable((turn, turn) for turn in range(4)):
            text, act, most = (
                rng.choice(texts),
                rng.choice(["reply", "revise"]),
                rng.randrange(1, 9),
            )
            said = []
            for talk in (plain, made):
                steps = getattr(talk, act)(text, turn)
                bursts = itertools.islice(filter(None, steps), most)
                said.append([token for burst in bursts for token in burst.ids])
                steps.close()
            # Their pauses differ, so one may have got further.
            common = min(map(len, said))
            assert said[0][:common] == said[1][:common]
            if plain.ids != made.ids or rng.random() < 0.5:
                tokens = rng.randrange(common + 1)
                assert plain.heard(tokens) == made.heard(tokens)
            # What follows a call is not taken back by what was heard, if only one has got there.
            if plain.ids != made.ids and call in (*plain.ids, *made.ids):
                assert plain.ids[: len(made.ids)] == made.ids[: len(plain.ids)]
                break
            assert plain.ids == made.ids
            compared += 1
    assert Anew.replays > replays + 10 * count and compared > 6 * count


@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
def test_a_conversation_without_a_slot_says_the_same(
    workshop: Workshop, sampling: Sampling, caplog: pytest.LogCaptureFixture
) -> None:
    models = workshop.decoder(), workshop.draft("unsteady")
    rounds, prompt = captured(*models, sampling, slots=1), prompts(workshop.vocab, 2)[1]
    first, second = (speculator(*models, sampling, 4, captured=rounds) for _ in range(2))
    one, replays = say(first, prompt, 24).ids, Anew.replays
    other = say(second, prompt, 24).ids
    assert (first.cache.slot, second.cache.slot) == (0, None)
    assert one == other and Anew.replays == replays
    assert second.stats.total.without_slot > 5 and not first.stats.total.without_slot
    assert caplog.text.count("no slot is free") == 1
    expected = say(speculator(*models, sampling, 4), prompt, 24, turn=2).ids
    for made in (first, second):
        made.release()
        made.rollback(0)
    assert say(second, prompt, 24, turn=2).ids == expected and Anew.replays > replays


# ---- what a GPU needs


def at_work(
    kind: str, workshop: Workshop, sampling: Sampling, device: str = "cpu", capacity: int = 64
) -> FixedRound:
    models: list[PlacedModel] = []
    for seed in (0, 1):
        model: Any = build_model(kind, workshop.vocab, seed)
        model = model.to(device)
        models.append(PlacedModel(decoder(model, workshop.vocab, CONTEXT), Slots(1, capacity)))
    return FixedRound(models[0], models[1], sampling)


def a_round(length: int, vocab: int, seed: int) -> Round:
    rng = random.Random(seed)
    keys = [rng.randrange(-(2**63), 2**63) for _ in range(MOST + 1)]
    return Round((0, 0), length, length // 2, (rng.randrange(vocab), rng.randrange(vocab)), keys)


class Recorder(TorchDispatchMode):
    """Writes down each operation and where its tensors lie: those that stay by their address,
    those that come and go by the order in which they are made."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self._made: dict[int, tuple[int, Tensor]] = {}
        """By address; they are kept, so that no address is used twice."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        took, _ = tree_flatten((args, kwargs))
        result = func(*args, **kwargs)
        gave, _ = tree_flatten(result)
        known = {self._base(value) for value in took if isinstance(value, Tensor)}
        for value in gave:
            if isinstance(value, Tensor) and self._base(value) not in known:
                self._made.setdefault(self._base(value), (len(self._made), value))
        self.seen.append((str(func), [self._told(value) for value in [*took, *gave]]))
        return result

    @staticmethod
    def _base(value: Tensor) -> int:
        return value.untyped_storage().data_ptr()

    def _told(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value if isinstance(value, int | float | bool) else str(value)
        number, _ = self._made.get(self._base(value), (None, None))
        where = ("made", number) if number is not None else ("stays", value.data_ptr())
        return (*where, tuple(value.shape), value.stride(), value.storage_offset(), value.dtype)


class Staying(TorchDispatchMode):
    """Everything that is taken or given lies on the device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_flatten((args, kwargs, result))[0]:
            assert not isinstance(value, Tensor) or value.device.type == self._device, func
        return result


@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
@pytest.mark.parametrize("k", [0, 1, 4])
def test_each_replay_does_the_same_at_the_same_addresses(
    workshop: Workshop, sampling: Sampling, k: int
) -> None:
    work, found = at_work("llama", workshop, sampling), []
    for seed, length in enumerate((2, 17, 30)):
        work.inputs.load(a_round(length, workshop.vocab, seed))
        with Recorder() as recorder:
            if k:
                work.draft(k, 64)
            work.verify(k, 64)
        if seed:  # what is made once, such as buffers, is made in the first
            found.append(recorder.seen)
    assert found[0] == found[1] and len(found[0]) > 100
    names = {name for name, _ in found[0]}
    assert not {name for name in names if "_local_scalar_dense" in name or "nonzero" in name}


@pytest.mark.parametrize("sampling", [GREEDY, PENALISED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", sorted({*KINDS, *WINDOWED} - {"windowed-gpt-oss"}))
def test_a_round_needs_no_values_before_its_one_copy(
    workshop: Workshop, kind: str, sampling: Sampling
) -> None:
    """On the meta device there are none: whatever asked for one would fail. And nothing else is
    brought there after the one copy to it."""
    work = at_work(kind, workshop, sampling, "meta")
    work.inputs.load(a_round(17, workshop.vocab, 0))
    for k in LENGTHS if kind == "llama" else (0, 2):
        with Staying("meta"):
            if k:
                work.draft(k, 64)
            work.verify(k, 64)
    with pytest.raises(RuntimeError, match="meta"):
        work.decided.tolist()


def test_more_is_captured_only_when_it_is_wanted(workshop: Workshop) -> None:
    made: list[str] = []

    class Noted(Anew):
        def __init__(self, work: Any) -> None:
            super().__init__(work)
            made.append(work.func.__name__ + str(work.args))

    models = workshop.decoder(), workshop.draft("same")
    rounds = captured(*models, GREEDY)
    rounds._capture = Noted
    rounds.prepare()
    assert made == ["verify(0, 256)", "verify(4, 256)", "draft(4, 256)"]
    one = speculator(*models, GREEDY, 4, captured=rounds)
    say(one, prompts(workshop.vocab, 2)[1], 300)
    every = itertools.product(("draft", "verify"), LENGTHS, (256, 512))
    assert {*made[3:]} <= {f"{name}({k}, {reach})" for name, k, reach in every}
    assert len(made) == len({*made})


def test_what_cannot_be_captured_is_done_plainly_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def graph(*_: object, **options: object) -> Iterator[None]:
        yield
        raise RuntimeError("operation not permitted\nwhen capturing")

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    for name in ("graph_pool_handle", "current_stream", "default_stream", "memory_reserved"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)
    capture, done = CudaGraphs(), []
    first, second = (capture(lambda at=at: done.append(at)) for at in (1, 2))
    done.clear()
    for each in (second, first, second):
        each.replay()
    assert done == [2, 1, 2]
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == ["rounds are not captured: operation not permitted"]
