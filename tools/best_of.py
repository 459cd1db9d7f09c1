"""Measures the gain and the cost of `llm.best_of`.

    python -m tools.best_of exact --seeds 4
    python -m tools.best_of exact --target smollm2-135m-instruct --seeds 1
    python -m tools.best_of time

`exact` asks 200 held-out questions of the starter's domain, each with one right answer, at
temperature 0.8. It counts the right answers of single replies, of the best of several first
clauses, of the best of several replies, and of greedy decoding. The starter has to use exactly the
words of its training. Another target has to say the one word of the answer that is not in the
question, in a reply of at most 24 tokens.

`time` compares the time to the first clause, alone and as the best of several, in pairs. The prompt
is read before. It also counts passes of the target, which do not depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping
from statistics import fmean, median

from msgspec.structs import replace
from voiceloop_parallel.lines import ends_clause

from models.train.domain import factual
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.process import configure, small_work
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

TEMPERATURE = 0.8


def ways(count: int, target: str) -> Mapping[str, LlmConfig]:
    """Return the settings to compare, by name."""
    greedy = LlmConfig(target=target, max_new_tokens=256 if target == "starter" else 24)
    single = replace(greedy, temperature=TEMPERATURE)
    best = replace(single, best_of=count)
    return {
        "single": single,
        "best first clause": best,
        "best reply": replace(best, best_of_for="reply"),
        "greedy": greedy,
    }


def words(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"[a-z0-9']+", text.lower()))


def keyed(count: int = 200) -> list[tuple[str, str]]:
    """Return questions whose short answers have just one word that is not in the question.

    Each comes with that word.
    """
    found = [
        (question, (words(answer) - words(question)).pop())
        for question, answer in factual("heldout", 1200)
        if len(words(answer) - words(question)) == 1 and len(answer.split()) < 9
    ]
    return found[:count]


def reply(talk: SpeculativeConversation, question: str) -> str:
    """Return the text of the reply to a question that begins a conversation."""
    return "".join(item.text for item in talk.reply(question, 1) if isinstance(item, TokenBurst))


def exact(llm: SpeculativeLlm, seed: int) -> float:
    """Return the share of questions that are answered correctly."""
    starter = llm.name == "starter"
    questions = factual("heldout") if starter else keyed()
    right = 0
    for number, (question, answer) in enumerate(questions):
        talk = llm.conversation(seed=seed * len(questions) + number)
        said = reply(talk, question)
        right += said == answer if starter else answer in words(said)
        talk.close()
    return right / len(questions)


def clause(llm: SpeculativeLlm, question: str, seed: int) -> tuple[float, int]:
    """Return milliseconds and passes of the target from a prefilled prompt to a first clause."""
    talk = llm.conversation(seed=seed)
    for _ in talk.prefill(question, 1):
        pass
    said, begun, steps = "", time.perf_counter(), talk.reply(question, 1)
    for item in steps:
        said += item.text if isinstance(item, TokenBurst) else ""
        if ends_clause(said):
            break
    took, passes = 1000 * (time.perf_counter() - begun), talk.counters.target_passes
    steps.close()
    talk.close()
    return took, passes


def compare_exact(count: int, target: str, seeds: int) -> None:
    """Print the share of right answers, as the mean over `seeds` and for each seed."""
    for name, config in ways(count, target).items():
        llm = speculative(config)
        shares = [exact(llm, seed) for seed in range(seeds if config.temperature else 1)]
        print(f"{name:18} {fmean(shares):6.1%}   " + " ".join(f"{share:.1%}" for share in shares))


def compare_time(count: int, target: str) -> None:
    """Print the median time to a first clause, alone and as the best of `count`."""
    alone, best = (
        speculative(ways(count, target)[name]) for name in ("single", "best first clause")
    )
    for llm in (alone, best):
        clause(llm, "Hello.", 0)  # warm it up
    pairs = [
        (clause(alone, question, seed), clause(best, question, seed))
        for seed, (question, _) in enumerate(factual("heldout"))
    ]
    for name, found in zip(("single", "best"), zip(*pairs, strict=True), strict=True):
        took, passes = zip(*found, strict=True)
        print(f"{name:7} {median(took):6.1f} ms, {fmean(passes):4.1f} passes")
    print(f"ratio {median(best / alone for (alone, _), (best, _) in pairs):.2f}")


def main() -> None:
    """Run the measurement that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("exact", "time"))
    parser.add_argument("--count", type=int, default=4, help="candidates")
    parser.add_argument("--seeds", type=int, default=4, help="how often each question is asked")
    parser.add_argument("--target", default="starter", help="as llm.target")
    args = parser.parse_args()
    configure(0)
    small_work()
    if args.what == "exact":
        compare_exact(args.count, args.target, args.seeds)
    else:
        compare_time(args.count, args.target)


if __name__ == "__main__":
    main()
