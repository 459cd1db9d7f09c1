"""Checks the language model engine on a GPU and measures it there, in less than eight minutes.

    python scripts/gpu_check.py

Models are built in place from random numbers, so nothing is downloaded, and besides torch,
transformers and numpy nothing needs to be installed. The checks come first, one line each; then
the tables of `voiceloop bench llm` for synthetic pairs. Exit status 1 if a check fails.
"""

from __future__ import annotations

import argparse
import copy
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

# voiceloop need not be installed here.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from voiceloop.bench.figures import Verified, acceptance
from voiceloop.bench.llm import Plan, measure
from voiceloop.bench.modes import OurMode, Prompt, TransformersMode
from voiceloop.bench.pair import Subjects, load_subjects, subjects
from voiceloop.bench.progress import Progress
from voiceloop.bench.report.draw import text
from voiceloop.bench.report.llm import report
from voiceloop.bench.synthetic import Shape, drawn_pair, synthetic_prompts, vocabulary
from voiceloop.config import LlmConfig
from voiceloop.errors import OutOfMemory, VoiceloopError
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder, feed

SMALL = Shape(256, 512, 4, 8, 4, 32)
"""Of the models that the checks draw."""
VOCAB = 4096
BLOCKS = (2, 3, 5, 9)
"""Rows of a pass that are compared with one row at a time."""
MINUTES = 7.0


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Size:
    """How much the checks do."""

    shape: Shape = SMALL
    vocab: int = VOCAB
    prompts: int = 4
    tokens: int = 48
    synthetic: str = "120m+8m"


def exact_text(device: torch.device, size: Size) -> Iterator[Check]:
    """In double precision no two ways of computing a logit can disagree about the largest."""
    for temperature in (0.0, 0.9):
        config = LlmConfig(
            temperature=temperature,
            seed=0,
            max_new_tokens=size.tokens,
            context=512,
            num_speculative_tokens=4,
        )
        both, prompts = _drawn(device, torch.float64, size, config)
        plain = OurMode(both.pair.plain().conversation(), size.tokens)
        own = OurMode(both.pair.conversation(), size.tokens)
        answers = [(plain.answer(prompt), own.answer(prompt)) for prompt in prompts]
        rounds = [one for _, answer in answers for one in answer.rounds]
        same = all(one.ids == other.ids for one, other in answers)
        name = f"speculative text equals plain text at temperature {temperature:g}"
        yield Check(name, same and _tested(rounds), f"double precision, {_counts(rounds)}")
        if temperature == 0:
            theirs = TransformersMode(both.target, None, None, config, both.pair.eos)
            same = all(
                theirs.answer(prompt).ids == answer.ids
                for prompt, (answer, _) in zip(prompts, answers, strict=True)
            )
            yield Check("plain text equals that of transformers", same, "double precision, greedy")


def interrupted(device: torch.device, size: Size) -> Iterator[Check]:
    """A reply that was broken off anywhere leaves caches that answer as new ones do."""
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = _drawn(device, torch.float64, size, config)
    first, second = prompts[:2]
    fresh = both.pair.conversation()
    deque(fresh.reply(second.text, 0), maxlen=0)
    wrong = 0
    for steps in range(1, 12):
        conversation = both.pair.conversation()
        reply = conversation.reply(first.text, 0)
        for _ in range(steps):
            next(reply)
        reply.close()
        deque(conversation.reply(second.text, 0), maxlen=0)
        wrong += conversation.ids != fresh.ids
        conversation.close()
    yield Check("a reply broken off after any step leaves no trace", wrong == 0, f"{wrong} of 11")


@torch.inference_mode()
def rounding(device: torch.device, dtype: torch.dtype, size: Size) -> Iterator[Check]:
    """In low precision the number of rows of a pass changes logits, so texts need not be equal.

    Every token of a speculative reply must still be one that rounding may have put first: with e
    the largest change of any logit between one row at a time and several, its logit is at most 2e
    below the largest (the token's own may be e too high there, the largest e too low). That says
    something only if most runners-up are farther away.
    """
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = _drawn(device, dtype, size, config)
    target, _ = both.pair.decoders
    own = OurMode(both.pair.conversation(), size.tokens)
    largest, short, near, tokens = 0.0, 0.0, 0, 0
    rounds: list[Verified] = []
    for prompt in prompts:
        answer = own.answer(prompt)
        rounds += answer.rounds
        one = teacher_forced(target, prompt.ids, answer.ids, 1)
        for rows in BLOCKS:
            block = teacher_forced(target, prompt.ids, answer.ids, rows)
            largest = max(largest, float((one - block).abs().max()))
        said = one.gather(1, torch.tensor(answer.ids, device=one.device).unsqueeze(1)).squeeze(1)
        top = one.topk(2).values
        short = max(short, float((top[:, 0] - said).max()))
        near += int((top[:, 0] - top[:, 1] <= 2 * largest).sum())
        tokens += len(answer.ids)
    detail = f"{dtype}, e = {largest:.2g}, at most {short:.2g} below, {near} of {tokens} undecided"
    passed = short <= 2 * largest and 2 * near < tokens and _tested(rounds)
    yield Check("every token is the likeliest but for rounding", passed, detail)


@torch.inference_mode()
def accuracy(device: torch.device, dtype: torch.dtype, size: Size) -> Iterator[Check]:
    """Our passes are as close to single precision as transformers' own."""
    config = LlmConfig(max_new_tokens=size.tokens, context=512, num_speculative_tokens=4)
    both, prompts = _drawn(device, dtype, size, config)
    exact = copy.deepcopy(both.target).float()
    ours = theirs = 0.0
    for prompt in prompts:
        ids = torch.tensor([prompt.ids], device=device)
        truth = _logits(exact, ids)
        got = teacher_forced(both.pair.decoders[0], prompt.ids[:1], prompt.ids[1:], 4)
        ours += float((got.float() - truth[:-1, : got.shape[1]]).square().mean())
        theirs += float((_logits(both.target, ids).float() - truth).square().mean())
    detail = f"{dtype}, mean square error {ours:.2g}, transformers' {theirs:.2g}"
    yield Check("our passes are as exact as transformers'", ours <= 2 * theirs, detail)


def oracle(device: torch.device, dtype: torch.dtype, size: Size) -> Iterator[Check]:
    """The synthetic pair speaks the same text in all modes, and its draft is right as chosen."""
    asked = 0.7
    config = LlmConfig(
        max_new_tokens=size.tokens,
        num_speculative_tokens=4,
        device=_name(device),
        dtype=_dtype(dtype),
    )
    both = load_subjects(config, size.synthetic, asked)
    texts = synthetic_prompts(vocabulary(size.synthetic), 3 * size.prompts)
    prompts = [Prompt(text, both.pair.prompt(text)) for text in texts]
    plain = OurMode(both.pair.plain().conversation(), size.tokens)
    own = OurMode(both.pair.conversation(), size.tokens)
    theirs = TransformersMode(both.target, both.draft, 3, config, both.pair.eos)
    answers = [[mode.answer(prompt) for mode in (plain, own, theirs)] for prompt in prompts]
    same = all(one.ids == other.ids for one, *others in answers for other in others)
    yield Check("all modes speak the synthetic pair's text", same, f"{dtype}")
    for place, name in ((1, "our"), (2, "transformers'")):
        rounds = [one for answer in answers for one in answer[place].rounds]
        share = acceptance(rounds) or 0.0
        tested = sum(
            min(one.accepted + 1, one.drafted) for one in rounds if one.accepted is not None
        )
        allowed = 4 * (asked * (1 - asked) / max(1, tested)) ** 0.5
        detail = f"{share:.3f} of {tested} guesses, asked for {asked:g}"
        yield Check(
            f"{name} rounds see the chosen acceptance", abs(share - asked) <= allowed, detail
        )


def teacher_forced(
    model: Decoder, prompt: Sequence[int], reply: Sequence[int], rows: int
) -> Tensor:
    """Logits after which each token of `reply` came, [len(reply), vocab], `rows` in each pass."""
    cache = KvCache(len(prompt) + len(reply) + rows)
    deque(feed(model, cache, prompt[:-1]), maxlen=0)
    fed = [prompt[-1], *reply[:-1]]
    parts: list[Tensor] = []
    for start in range(0, len(fed), rows):
        block = torch.tensor(fed[start : start + rows], device=model.device)
        parts.append(model.forward(block, cache, len(block)).clone())
    return torch.cat(parts)


def check(device: torch.device, size: Size) -> Iterator[Check]:
    """All checks, one after the other."""
    low = torch.bfloat16
    steps: list[Callable[[], Iterator[Check]]] = [
        lambda: exact_text(device, size),
        lambda: interrupted(device, size),
        lambda: rounding(device, low, size),
        lambda: accuracy(device, low, size),
        lambda: oracle(device, low, size),
    ]
    for step in steps:
        yield from step()


def main(argv: Sequence[str] | None = None) -> int:
    """Check, measure, and tell."""
    parser = argparse.ArgumentParser(
        description="Checks the language model engine on a GPU, and measures it there."
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--pairs", nargs="*", default=["1b+0.1b", "8b+1b"], metavar="PAIR")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all of it")
    options = parser.parse_args(argv)
    began = perf_counter()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu_check: torch finds no CUDA device here", file=sys.stderr)
        print("hint: --device cpu --pairs tiny tries the script itself", file=sys.stderr)
        return 2
    device = torch.device(options.device)
    failed = 0
    # A processor takes minutes for what a GPU does in seconds.
    size = Size(synthetic="tiny") if options.device == "cpu" else Size()
    for one in check(device, size):
        failed += not one.passed
        print(f"{'ok  ' if one.passed else 'FAIL'} {one.name}: {one.detail}", flush=True)
    for done, pair in enumerate(options.pairs):
        left = options.minutes * 60 - (perf_counter() - began)
        # The search, warming up and single passes take about as long as the replies.
        limit = 0.5 * left / (len(options.pairs) - done)
        print(f"\n{pair}\n", flush=True)
        failed += not _bench(pair, device, limit)
    took = perf_counter() - began
    print(f"\n{failed} failed, {took / 60:.1f} minutes", flush=True)
    return 1 if failed else 0


def _bench(pair: str, device: torch.device, limit_s: float) -> bool:
    plan = Plan(LlmConfig(device=_name(device), max_new_tokens=64), synthetic=pair, limit_s=limit_s)
    try:
        with Progress(sys.stderr) as progress:
            print(text(report(measure(plan, progress))), flush=True)
    except OutOfMemory as error:
        print(f"not measured: {error.message}", flush=True)
    except VoiceloopError as error:
        print(f"{error.message}\nhint: {error.hint}", file=sys.stderr)
        return False
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return True


def _drawn(
    device: torch.device, dtype: torch.dtype, size: Size, config: LlmConfig
) -> tuple[Subjects, list[Prompt]]:
    both = subjects(*drawn_pair(size.shape, size.vocab, device, dtype), config)
    texts = synthetic_prompts(size.vocab, size.prompts)
    return both, [Prompt(text, both.pair.prompt(text)) for text in texts]


def _logits(model: PreTrainedModel, ids: Tensor) -> Tensor:
    called: Any = model
    return called(ids).logits[0]


def _tested(rounds: Sequence[Verified]) -> bool:
    """Whether guesses stood, and whether guesses fell: otherwise a check has seen nothing."""
    drafted = sum(one.drafted for one in rounds)
    return 0 < sum(one.accepted or 0 for one in rounds) < drafted


def _counts(rounds: Sequence[Verified]) -> str:
    drafted = sum(one.drafted for one in rounds)
    return f"{sum(one.accepted or 0 for one in rounds)} of {drafted} guesses accepted"


def _name(device: torch.device) -> Any:
    return device.type


def _dtype(dtype: torch.dtype) -> Any:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    sys.exit(main())
