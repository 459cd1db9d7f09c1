"""What is asked first in a conversation: a draw for each kind, and how often each comes.

Knows nothing of what may follow, nor of how a person puts it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from models.train.domain import outside
from models.train.domain.exchange import Exchange, ask, choose, pick
from models.train.domain.facts import ALL_FACTS, BY_NAME, WEIGHTS
from models.train.domain.grammar import expand, held_out_carriers
from models.train.domain.talk import (
    JOKES,
    LIMITS,
    NO_DEVICES,
    OFFLINE,
    POEMS,
    RIDDLES,
    SPACE_FACTS,
    STORIES,
    TALKS,
    TOPICS,
)
from models.train.domain.tools import draw_tool


def draw_fact(rng: random.Random, split: str) -> Exchange:
    """A fact's question, the fact by its weight."""
    fact = rng.choices(ALL_FACTS, WEIGHTS)[0]
    carrier, value = choose(fact.name, fact.carriers, tuple(fact.rows), split, rng)
    return Exchange(ask(carrier, value, rng), fact.rows[value], fact.name, value)


HARD = 0.15
"""Share of sums that are too hard. Without them the nearest sum known by heart is answered, or half
of the numbers are repeated and then declined."""


def draw_sum(rng: random.Random, split: str) -> Exchange:
    """A sum, now and then one that is to be declined."""
    if rng.random() < HARD:
        return _hard_sum(rng, split)
    fact = BY_NAME["sum"]
    carrier, value = choose(fact.name, fact.carriers, tuple(fact.rows), split, rng)
    return Exchange(ask(carrier, value, rng), fact.rows[value], fact.name, value)


def _hard_sum(rng: random.Random, split: str) -> Exchange:
    fact = BY_NAME["sum"]
    while True:
        most = rng.choice((30, 100, 1000))
        a, b = rng.randrange(most), rng.randrange(most)
        value = f"{a} {rng.choice(('plus', 'minus', 'times', 'divided by'))} {b}"
        carrier = pick(fact.name, fact.carriers, split, rng)
        if carrier and value not in fact.rows and max(a, b) > 12:
            return Exchange(ask(carrier, value, rng), LIMITS, "outside")


def draw_talk(rng: random.Random, split: str) -> Exchange:
    """Small talk."""
    while True:
        talk = rng.choice(TALKS)
        if carrier := pick(talk.reply, talk.carriers, split, rng):
            return Exchange(expand(carrier, rng), talk.reply, "talk")


BRIEF = ("briefly, {q}", "in one sentence, {q}", "in short, {q}", "just briefly, {q}")


def draw_topic(rng: random.Random, split: str) -> Exchange:
    """Something to explain, now and then asked for in one sentence."""
    while True:
        topic = rng.choice(TOPICS)
        if question := pick(topic.short, topic.question, split, rng):
            if rng.random() < 0.15:
                question = rng.choice(BRIEF).replace("{q}", question)
                return Exchange(question, topic.short, "topic-short", topic.short)
            return Exchange(question, topic.long, "topic", topic.short)


JOKE = ("tell me a joke.", "do you know a joke?", "make me laugh.", "say something funny.", "I want to hear a joke.",
        "a joke, please.", "can you tell me a joke?", "tell me something funny.", "do you have a joke for me?")  # fmt: skip
RIDDLE = ("tell me a riddle.", "give me a riddle.", "do you know a riddle?", "ask me a riddle.", "ask me something.",
          "I want a riddle.")  # fmt: skip
POEM = ("tell me a poem.", "recite a poem.", "do you know a poem?", "say a poem.", "read me a poem.",
        "I want to hear a poem.")  # fmt: skip
FACT = ("tell me something interesting.", "tell me a fun fact.", "do you know a fun fact?", "teach me something.",
        "tell me something new.", "give me a fun fact.")  # fmt: skip
STORY = ("tell me a story about {x}.", "do you know a story about {x}?", "I want to hear a story about {x}.",
         "can you tell me a story about {x}?", "a story about {x}, please.", "read me a story about {x}.")  # fmt: skip
ANY_STORY = ("tell me a story.", "do you know a story?", "I want to hear a story.", "a story, please.",
             "can you tell me a story?", "tell me a bedtime story.")  # fmt: skip


def draw_tale(rng: random.Random, split: str) -> Exchange:
    """A joke, a riddle, a poem, a curious fact or a story."""
    kinds: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
        ("joke", JOKE, JOKES), ("riddle", RIDDLE, tuple(q for q, _ in RIDDLES)), ("poem", POEM, POEMS),
        ("fact", FACT, SPACE_FACTS), ("story", ANY_STORY, tuple(STORIES.values())),
    )  # fmt: skip
    if rng.random() < 0.3:
        carrier, value = choose("story", STORY, tuple(STORIES), split, rng)
        return Exchange(carrier.replace("{x}", value), STORIES[value], "story", STORIES[value])
    kind, carriers, replies = rng.choice(kinds)
    carrier = pick(kind, carriers, split, rng)
    assert carrier is not None
    # The first of each kind is what a fresh conversation hears; "another one" then moves on.
    return Exchange(carrier, replies[0], kind, replies[0])


def draw_outside(rng: random.Random, split: str, *, invented: bool = True) -> Exchange:
    """A question to be declined; `invented` allows names that exist nowhere."""
    held = split == "heldout"
    choice = rng.random()
    if choice < 0.16 and not held:
        pool = [t for t in outside.LIVE if t not in held_out_carriers("live", outside.LIVE)]
        text = outside.fill(expand(rng.choice(pool), rng), rng, held_out=False)
        return Exchange(text, OFFLINE, "outside")
    if choice < 0.3 and not held:
        pool = [
            t for t in outside.DEVICES if t not in held_out_carriers("devices", outside.DEVICES)
        ]
        return Exchange(expand(rng.choice(pool), rng), NO_DEVICES, "outside")
    if choice < 0.62:
        name = rng.choice(tuple(outside.FACT_UNKNOWN))
        kind = outside.FACT_UNKNOWN[name]
        values = (outside.UNKNOWN_HELD_OUT if held else outside.UNKNOWN)[kind]
        value = rng.choice(values)
        if invented and not held and rng.random() < 0.5:
            word = outside.pseudo_word(rng)
            value = word if kind == "word" else word.capitalize()
            if kind in ("animal", "invention", "dish"):
                value = ("the " if kind == "invention" else "a ") + word
        fact = BY_NAME[name]
        if value in fact.rows:
            return draw_outside(rng, split, invented=invented)
        return Exchange(ask(rng.choice(fact.carriers), value, rng), LIMITS, "outside")
    template = rng.choice(outside.HELD_OUT if held else outside.TRAIN)
    return Exchange(outside.fill(template, rng, held_out=held), LIMITS, "outside")


Draw = Callable[[random.Random, str], Exchange]
SOURCES: tuple[tuple[Draw, float], ...] = (
    (draw_fact, 0.5), (draw_talk, 0.14), (draw_topic, 0.12), (draw_tale, 0.06), (draw_tool, 0.08), (draw_outside, 0.1),
)  # fmt: skip


def any_source(rng: random.Random) -> Draw:
    """One of the draws, by their weights."""
    return rng.choices([source for source, _ in SOURCES], [weight for _, weight in SOURCES])[0]
