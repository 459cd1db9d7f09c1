"""The two products: what a user says in one turn, and whole dialogues, as people put them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from models.train.domain.exchange import Exchange
from models.train.domain.followups import QUOTING, follow_up
from models.train.domain.grammar import tidy
from models.train.domain.sources import any_source, draw_outside, draw_sum
from models.train.domain.talk import UNFINISHED


@dataclass(frozen=True)
class Message:
    """One turn of a dialogue."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    text: str
    learn: bool = True
    """False where the text is noise that a model must not learn to say."""
    complete: bool = True
    """False for a user turn that was never finished; it ends the dialogue."""


LEADS = (
    "hey, ",
    "okay, ",
    "so, ",
    "um, ",
    "well, ",
    "voiceloop, ",
    "hey voiceloop, ",
    "please, ",
    "and ",
    "now, ",
)
BARE = ("talk",)
"""Kinds that are said as they are, without a lead or a please."""


def _lower_first(text: str) -> str:
    head = text.split(" ", 1)[0]
    proper = head[:1].isupper()  # carriers are written in lower case but for names and "I"
    return text if proper else text[0].lower() + text[1:]


def _said(exchange: Exchange, rng: random.Random) -> str:
    text = exchange.user
    if exchange.kind not in BARE:
        if rng.random() < 0.25:
            text = rng.choice(LEADS) + _lower_first(text)
        if rng.random() < 0.08 and "please" not in text:
            text = f"{text[:-1]}, please{text[-1]}"
    return tidy(text)


SUMS = 0.3
"""Share of sums in dialogues, above their share of what is asked: there are a thousand of them to
be learned by heart, and they share all their words."""


def exchanges(rng: random.Random, split: str = "train", turns: int = 1) -> Iterator[Exchange]:
    """A conversation of `turns` questions and answers as it is said."""
    previous: Exchange | None = None
    for _ in range(turns):
        following = None
        if previous is not None and rng.random() < 0.55:
            following = follow_up(previous, rng, split)
        if following is None:
            draw = draw_sum if rng.random() < SUMS else any_source(rng)
            following = draw(rng, split)
        following = replace(following, user=_said(following, rng))
        yield following
        previous = following


def talk(rng: random.Random, split: str = "train") -> tuple[str, str]:
    """A question that stands alone, and what is said after its answer that does not."""
    while True:
        (first,) = exchanges(rng, split)
        if following := follow_up(first, rng, split):
            return first.user, _said(following, rng)


DANGLING = frozenset(
    ("the", "of", "is", "a", "in", "to", "for", "are", "do", "me", "how", "what", "does", "who",
     "about", "plus", "times", "many")
)  # fmt: skip
"""Words that nobody ends with."""
SYSTEM = (
    "You are voiceloop, a helpful voice assistant.",
    "You are a helpful assistant. Answer briefly.",
    "You are a friendly voice assistant who speaks in short sentences.",
    "Answer in one or two sentences.",
)


def _misheard(text: str, rng: random.Random) -> str:
    """`text` as a recogniser may get it wrong: a small word lost or an ending changed."""
    words = text.split()
    small = [
        i for i, word in enumerate(words) if word.islower() and word.isalpha() and len(word) < 6
    ]
    if len(words) > 4 and small:
        i = rng.choice(small)
        if rng.random() < 0.6:
            del words[i]
        else:
            words[i] = rng.choice(("the", "a", "is", "in", "of", "to", "do", "it"))
    return tidy(" ".join(words))


def dialogue(rng: random.Random, split: str = "train") -> list[Message]:
    """One conversation of one to six turns."""
    messages: list[Message] = []
    if rng.random() < 0.15:
        messages.append(Message("system", rng.choice(SYSTEM), learn=False))
    turns = rng.choices((1, 2, 3, 4, 6), (3, 3, 2, 1, 0.5))[0]
    noisy = split == "train"
    for exchange in exchanges(rng, split, turns):
        cut = _unfinished(exchange.user, rng)
        if noisy and cut and rng.random() < 0.03:
            messages.append(Message("user", cut, complete=False))
            break
        if noisy and cut and rng.random() < 0.01:
            messages.append(Message("user", cut, learn=False))
            messages.append(Message("assistant", UNFINISHED))
            continue
        wrong = _misheard(exchange.user, rng) if noisy and rng.random() < 0.05 else exchange.user
        repeats = exchange.reply.startswith(QUOTING)
        user = exchange.user if repeats else wrong
        messages.append(Message("user", user, learn=user == exchange.user))
        if exchange.call:
            messages.append(Message("assistant", exchange.call))
            messages.append(Message("tool", exchange.tool, learn=False))
        messages.append(Message("assistant", exchange.reply))
    return messages


def _unfinished(text: str, rng: random.Random) -> str | None:
    """A beginning of `text` that nobody would end there, without a final mark."""
    words = text.split()
    cuts = [i + 1 for i, word in enumerate(words[:-1]) if word.lower() in DANGLING and i > 0]
    return " ".join(words[: rng.choice(cuts)]) if cuts else None


def utterance(rng: random.Random, split: str = "train") -> str:
    """What a user says in one turn, as written."""
    if rng.random() < 0.12:
        previous = any_source(rng)(rng, "train")
        if following := follow_up(previous, rng, split):
            return _said(following, rng)
    while True:
        draw = any_source(rng)
        if draw is draw_outside:
            if split == "train":
                return _said(draw_outside(rng, split, invented=False), rng)
            continue
        return _said(draw(rng, split), rng)
