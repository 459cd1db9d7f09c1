"""The starter domain: what a person says to the demo assistant, and what it answers.

One generator feeds both models: the recogniser learns `utterance`s, the language models learn
whole `dialogue`s. `split="train"` never yields what `split="heldout"` is made of: a tenth of the
phrasings, and a tenth of the combinations of a phrasing with what fills its slot.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from models.train.domain import outside
from models.train.domain.grammar import expand, held_out_carriers, held_out_pair, tidy
from models.train.domain.tables import DAYS, FACTS, MONTHS, Fact
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
    UNFINISHED,
)

DECLINES = frozenset((LIMITS, OFFLINE, NO_DEVICES))
"""The exact replies that decline."""


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


@dataclass(frozen=True)
class Exchange:
    """A question, its answer, and what may follow from it."""

    user: str
    reply: str
    kind: str
    """What was asked, for follow-ups: the fact's name, `topic`, `joke`, …"""
    key: str = ""
    tool: str = ""
    """The tool's result where `reply` follows a call."""
    call: str = ""
    """The call as the assistant writes it."""


# ---- sums and conversions: facts whose rows are computed


def _sums() -> dict[str, str]:
    rows: dict[str, str] = {}
    for a in range(21):
        for b in range(21):
            rows[f"{a} plus {b}"] = f"{a} plus {b} is {a + b}."
            if b <= a:
                rows[f"{a} minus {b}"] = f"{a} minus {b} is {a - b}."
            if 1 <= a <= 12 and 1 <= b <= 12:
                rows[f"{a} times {b}"] = f"{a} times {b} is {a * b}."
                if b > 1:
                    rows[f"{a * b} divided by {b}"] = f"{a * b} divided by {b} is {a}."
    return rows


UNITS = (
    ("kilometer", "meter", 1000), ("meter", "centimeter", 100), ("kilogram", "gram", 1000),
    ("hour", "minute", 60), ("minute", "second", 60), ("foot", "inch", 12), ("week", "day", 7),
    ("year", "month", 12), ("day", "hour", 24), ("dollar", "cent", 100), ("pound", "ounce", 16),
    ("liter", "milliliter", 1000), ("yard", "foot", 3), ("mile", "yard", 1760),
)  # fmt: skip
PLURALS = {"foot": "feet", "inch": "inches"}


def _plural(unit: str) -> str:
    return PLURALS.get(unit, unit + "s")


def _conversions() -> dict[str, str]:
    rows: dict[str, str] = {}
    for big, small, factor in UNITS:
        for n in range(1, 13):
            if big == "mile" and n > 3:
                continue
            amount = f"1 {big}" if n == 1 else f"{n} {_plural(big)}"
            verb = "is" if n == 1 else "are"
            rows[f"{amount}|{_plural(small)}"] = f"{amount} {verb} {n * factor:,} {_plural(small)}."
    for c in range(0, 45, 5):
        f = round(c * 9 / 5 + 32)
        rows[f"{c} degrees Celsius|Fahrenheit"] = f"{c} degrees Celsius is {f} degrees Fahrenheit."
    return rows


COMPUTED = (
    Fact("sum", (
        "what is {x}?", "what's {x}?", "how much is {x}?", "calculate {x}.", "tell me {x}.",
        "can you calculate {x}?", "what does {x} make?", "{x}, please.", "I need to know {x}.",
        "do you know what {x} is?", "what do I get for {x}?", "{x}?",
    ), _sums(), 8.0),
    Fact("conversion", (
        "how many {b} are {a}?", "convert {a} to {b}.", "what is {a} in {b}?", "how much is {a} in {b}?",
        "{a} in {b}, please.", "tell me {a} in {b}.", "what are {a} in {b}?", "how many {b} are in {a}?",
        "can you convert {a} to {b}?", "turn {a} into {b}.",
    ), _conversions(), 3.5),
)  # fmt: skip
ALL_FACTS = FACTS + COMPUTED
WEIGHTS = [fact.weight for fact in ALL_FACTS]
BY_NAME = {fact.name: fact for fact in ALL_FACTS}


def _ask(carrier: str, value: str, rng: random.Random) -> str:
    first, _, second = value.partition("|")
    text = expand(carrier, rng).replace("{x}", value)
    return text.replace("{a}", first).replace("{b}", second)


def _choose(name: str, carriers: tuple[str, ...], values: tuple[str, ...], split: str,
            rng: random.Random) -> tuple[str, str]:  # fmt: skip
    """A carrier and a value of this split."""
    out = held_out_carriers(name, carriers)
    while True:
        carrier, value = rng.choice(carriers), rng.choice(values)
        held = carrier in out or (len(values) > 4 and held_out_pair(name, carrier, value))
        if held == (split == "heldout"):
            return carrier, value


def _fact(rng: random.Random, split: str) -> Exchange:
    fact = rng.choices(ALL_FACTS, WEIGHTS)[0]
    carrier, value = _choose(fact.name, fact.carriers, tuple(fact.rows), split, rng)
    return Exchange(_ask(carrier, value, rng), fact.rows[value], fact.name, value)


def _sum(rng: random.Random, split: str) -> Exchange:
    fact = BY_NAME["sum"]
    carrier, value = _choose(fact.name, fact.carriers, tuple(fact.rows), split, rng)
    return Exchange(_ask(carrier, value, rng), fact.rows[value], fact.name, value)


# ---- what is said rather than asked


def _pick(name: str, carriers: tuple[str, ...], split: str, rng: random.Random) -> str | None:
    """A carrier of this split, or None where none is held out."""
    out = held_out_carriers(name, carriers)
    pool = [carrier for carrier in carriers if (carrier in out) == (split == "heldout")]
    return rng.choice(pool) if pool else None


def _talk(rng: random.Random, split: str) -> Exchange:
    while True:
        talk = rng.choice(TALKS)
        if carrier := _pick(talk.reply, talk.carriers, split, rng):
            return Exchange(expand(carrier, rng), talk.reply, "talk")


BRIEF = ("briefly, {q}", "in one sentence, {q}", "in short, {q}", "just briefly, {q}")


def _topic(rng: random.Random, split: str) -> Exchange:
    while True:
        topic = rng.choice(TOPICS)
        if question := _pick(topic.short, topic.question, split, rng):
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


def _tale(rng: random.Random, split: str) -> Exchange:
    kinds: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
        ("joke", JOKE, JOKES), ("riddle", RIDDLE, tuple(q for q, _ in RIDDLES)), ("poem", POEM, POEMS),
        ("fact", FACT, SPACE_FACTS), ("story", ANY_STORY, tuple(STORIES.values())),
    )  # fmt: skip
    if rng.random() < 0.3:
        carrier, value = _choose("story", STORY, tuple(STORIES), split, rng)
        return Exchange(carrier.replace("{x}", value), STORIES[value], "story", STORIES[value])
    kind, carriers, replies = rng.choice(kinds)
    carrier = _pick(kind, carriers, split, rng)
    assert carrier is not None
    # The first of each kind is what a fresh conversation hears; "another one" then moves on.
    return Exchange(carrier, replies[0], kind, replies[0])


NEXT = {
    "joke": JOKES,
    "riddle": tuple(question for question, _ in RIDDLES),
    "poem": POEMS,
    "fact": SPACE_FACTS,
    "story": tuple(STORIES.values()),
}
ANSWERS = dict(RIDDLES)


# ---- tools


def call_text(name: str, **arguments: object) -> str:
    """A call in the form that the Qwen family writes."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


TIME = ("what time is it?", "what's the time?", "tell me the time.", "do you know what time it is?", "how late is it?",
        "what is the time (now|)?", "can you tell me the time?", "what time do we have?", "the time, please.")  # fmt: skip
DAY = ("what day is (it|today)?", "which day is (it|today)?", "what day of the week is it?", "what weekday is it?",
       "tell me what day it is.")  # fmt: skip
DATE = ("what is the date?", "what's the date (today|)?", "what date is (it|today)?", "tell me the date.",
        "which date is it?")  # fmt: skip
TIMER = ("set a timer for {x}.", "start a timer for {x}.", "timer for {x}.", "set the timer to {x}.",
         "I need a timer for {x}.", "can you set a timer for {x}?", "a timer for {x}, please.", "wake me in {x}.",
         "remind me in {x}.", "set an alarm in {x}.", "count down {x}.", "give me {x} on the timer.",
         "please set a timer for {x}.")  # fmt: skip
DURATIONS = tuple(
    f"{n} {unit if n == 1 else unit + 's'}"
    for unit, numbers in (
        ("minute", (*range(1, 21), 25, 30, 35, 40, 45, 50, 60, 90)),
        ("second", (5, 10, 15, 20, 30, 40, 45, 60, 90)),
        ("hour", (1, 2, 3, 4, 5, 6, 8, 12)),
    )
    for n in numbers
)


def clock_result(rng: random.Random) -> tuple[str, str, str]:
    """A time, a weekday and a date, as the time tool returns them."""
    hour, minute = rng.randint(1, 12), rng.randrange(60)
    time = f"{hour}:{minute:02d} {rng.choice(('AM', 'PM'))}"
    return time, rng.choice(DAYS), f"{rng.choice(MONTHS)} {rng.randint(1, 31)}"


def _tool(rng: random.Random, split: str) -> Exchange:
    if rng.random() < 0.5:
        carrier, value = _choose("timer", TIMER, DURATIONS, split, rng)
        amount, unit = value.split()
        call = call_text("set_timer", **{unit if unit.endswith("s") else unit + "s": int(amount)})
        user, reply = carrier.replace("{x}", value), f"I set a timer for {value}."
        if rng.random() < 0.05:
            error = json.dumps({"error": "no timer is available"})
            return Exchange(user, "I am sorry, that did not work.", "timer", value, error, call)
        return Exchange(user, reply, "timer", value, json.dumps({"timer": value}), call)
    time, day, date = clock_result(rng)
    result = json.dumps({"time": time, "day": day, "date": date})
    kind, carriers, reply = rng.choice(
        (("time", TIME, f"It is {time}."), ("time", TIME, f"It is {time}."), ("day", DAY, f"Today is {day}."), ("date", DATE, f"Today is {date}."))
    )  # fmt: skip
    carrier = _pick(kind, carriers, split, rng)
    assert carrier is not None
    return Exchange(expand(carrier, rng), reply, "time", time, result, call_text("get_time"))


# ---- outside the domain


def _outside(rng: random.Random, split: str, *, invented: bool = True) -> Exchange:
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
            return _outside(rng, split, invented=invented)
        return Exchange(_ask(rng.choice(fact.carriers), value, rng), LIMITS, "outside")
    template = rng.choice(outside.HELD_OUT if held else outside.TRAIN)
    return Exchange(outside.fill(template, rng, held_out=held), LIMITS, "outside")


# ---- how things are said

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


Draw = Callable[[random.Random, str], Exchange]
SOURCES: tuple[tuple[Draw, float], ...] = (
    (_fact, 0.5), (_talk, 0.14), (_topic, 0.12), (_tale, 0.06), (_tool, 0.08), (_outside, 0.1),
)  # fmt: skip


def _draw(rng: random.Random, split: str) -> Exchange:
    draw = rng.choices([source for source, _ in SOURCES], [weight for _, weight in SOURCES])[0]
    return draw(rng, split)


# ---- follow-ups: what only makes sense after a turn

AGAIN = ("say that again.", "repeat that.", "can you repeat that?", "once more, please.", "again, please.",
         "I didn't hear that.", "could you say that again?", "please repeat.", "one more time.")  # fmt: skip
WHAT_DID_I_SAY = ("what did I say?", "what did I ask?", "what was my question?", "repeat my question.",
                  "what did I just say?")  # fmt: skip
SHORTER = ("shorter, please.", "say it shorter.", "make it shorter.", "the short version, please.", "too long.",
           "can you make it shorter?", "in one sentence, please.")  # fmt: skip
LONGER = ("tell me more.", "can you explain that?", "explain it in more detail.", "longer, please.", "more details, please.",
          "say more about that.")  # fmt: skip
ANOTHER = ("another one.", "tell me another one.", "one more.", "one more, please.", "do you know another one?",
           "another one, please.", "give me another.")  # fmt: skip
GIVE_UP = ("I don't know.", "what is the answer?", "I give up.", "tell me the answer.", "no idea.", "what is it?",
           "say the answer.")  # fmt: skip
ABOUT = (
    "what about {x}?",
    "and {x}?",
    "how about {x}?",
    "then what about {x}?",
    "now {x}.",
    "and for {x}?",
)
ABOUT_NAMES = frozenset(fact.name for fact in FACTS) - {
    "count",
    "event",
    "superlative",
    "translation",
    "tip",
}


def _follow(previous: Exchange, rng: random.Random, split: str) -> Exchange | None:
    """Something that a person may say after `previous`."""

    def say(
        name: str, carriers: tuple[str, ...], reply: str, kind: str, key: str = ""
    ) -> Exchange | None:
        carrier = _pick(name, carriers, split, rng)
        return carrier and Exchange(carrier, reply, kind, key)

    choice = rng.random()
    if choice < 0.18:
        return say("again", AGAIN, previous.reply, previous.kind, previous.key)
    if choice < 0.24:
        return say("what-did-i-say", WHAT_DID_I_SAY, f"You said: {previous.user}", "talk")
    topic = {t.short: t for t in TOPICS}.get(previous.key)
    if previous.kind == "topic" and topic:
        return say("shorter", SHORTER, topic.short, "topic-short", topic.short)
    if previous.kind == "topic-short" and topic:
        return say("longer", LONGER, topic.long, "topic", topic.short)
    if previous.kind == "riddle" and rng.random() < 0.7:
        return say("give-up", GIVE_UP, ANSWERS[previous.key], "riddle-answer", previous.key)
    if previous.kind.removesuffix("-answer") in NEXT:
        series = NEXT[kind := previous.kind.removesuffix("-answer")]
        following = series[(series.index(previous.key) + 1) % len(series)]
        return say("another", ANOTHER, following, kind, following)
    if previous.kind in ABOUT_NAMES:
        fact = BY_NAME[previous.kind]
        carrier, value = _choose("about", ABOUT, tuple(fact.rows), split, rng)
        return Exchange(carrier.replace("{x}", value), fact.rows[value], fact.name, value)
    return None


# ---- the two products


SUMS = 0.3
"""Share of sums in dialogues, above their share of what is asked: there are a thousand of them to
be learned by heart, and they share all their words."""


def exchanges(rng: random.Random, split: str = "train", turns: int = 1) -> Iterator[Exchange]:
    """A conversation of `turns` questions and answers as it is said."""
    previous: Exchange | None = None
    for _ in range(turns):
        following = None
        if previous is not None and rng.random() < 0.55:
            following = _follow(previous, rng, split)
        if following is None:
            following = _sum(rng, split) if rng.random() < SUMS else _draw(rng, split)
        following = replace(following, user=_said(following, rng))
        yield following
        previous = following


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
        repeats = exchange.reply.startswith("You said: ")
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
    ends = (
        "the",
        "of",
        "is",
        "a",
        "in",
        "to",
        "for",
        "are",
        "do",
        "me",
        "how",
        "what",
        "does",
        "who",
        "about",
        "plus",
        "times",
        "many",
    )
    cuts = [i + 1 for i, word in enumerate(words[:-1]) if word.lower() in ends and i > 0]
    return " ".join(words[: rng.choice(cuts)]) if cuts else None


def utterance(rng: random.Random, split: str = "train") -> str:
    """What a user says in one turn, as written."""
    if rng.random() < 0.12:
        previous = _draw(rng, "train")
        if following := _follow(previous, rng, split):
            return _said(following, rng)
    while True:
        draw = rng.choices([source for source, _ in SOURCES], [weight for _, weight in SOURCES])[0]
        if draw is _outside:
            if split == "train":
                return _said(_outside(rng, split, invented=False), rng)
            continue
        return _said(draw(rng, split), rng)


# ---- the examinations


@cache
def factual(split: str = "heldout", count: int = 200) -> list[tuple[str, str]]:
    """Distinct factual questions of a split with their only right reply."""
    rng = random.Random(f"factual {split}")
    found: dict[str, str] = {}
    while len(found) < count:
        exchange = _fact(rng, split)
        found[tidy(exchange.user)] = exchange.reply
    return list(found.items())


@cache
def questions(split: str = "heldout", count: int = 50) -> list[str]:
    """Distinct questions that stand alone, for about a third of which the reply is longer."""
    rng = random.Random(f"questions {split}")
    found: dict[str, None] = {}
    while len(found) < count:
        draw = rng.choices((_fact, _topic, _tale, _tool), (0.55, 0.25, 0.12, 0.08))[0]
        found[tidy(draw(rng, split).user)] = None
    return list(found)


@cache
def contrast_pairs(count: int = 50) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """The same held-out sentence about two different things."""
    rng = random.Random("contrast")
    pairs: list[tuple[tuple[str, str], tuple[str, str]]] = []
    while len(pairs) < count:
        fact = rng.choices(ALL_FACTS, WEIGHTS)[0]
        carrier = sorted(held_out_carriers(fact.name, fact.carriers))[0]
        one, two = rng.sample(sorted(fact.rows), 2)
        if fact.rows[one] == fact.rows[two] or one.partition("|")[2] != two.partition("|")[2]:
            continue
        asked = [(tidy(_ask(carrier, value, rng)), fact.rows[value]) for value in (one, two)]
        pairs.append((asked[0], asked[1]))
    return pairs


@cache
def out_of_domain(split: str = "heldout", count: int = 50) -> list[str]:
    """Distinct questions that are to be declined."""
    rng = random.Random(f"outside {split}")
    found: dict[str, None] = {}
    while len(found) < count:
        found[tidy(_outside(rng, split).user)] = None
    return list(found)


__all__ = [
    "DECLINES",
    "Exchange",
    "Message",
    "contrast_pairs",
    "dialogue",
    "exchanges",
    "factual",
    "out_of_domain",
    "questions",
    "utterance",
]
