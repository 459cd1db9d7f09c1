"""What makes sense only after a turn: again, shorter, another one, what about …"""

from __future__ import annotations

import random

from models.train.domain.exchange import Exchange, choose, pick
from models.train.domain.facts import BY_NAME
from models.train.domain.tables import FACTS
from models.train.domain.talk import JOKES, POEMS, RIDDLES, SPACE_FACTS, STORIES, TOPICS

AGAIN = ("say that again.", "repeat that.", "can you repeat that?", "once more, please.", "again, please.",
         "I didn't hear that.", "could you say that again?", "please repeat.", "one more time.")  # fmt: skip
QUOTING = "You said: "
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
NEXT = {
    "joke": JOKES,
    "riddle": tuple(question for question, _ in RIDDLES),
    "poem": POEMS,
    "fact": SPACE_FACTS,
    "story": tuple(STORIES.values()),
}
ANSWERS = dict(RIDDLES)


def follow_up(previous: Exchange, rng: random.Random, split: str) -> Exchange | None:
    """Something that a person may say after `previous`."""

    def say(
        name: str, carriers: tuple[str, ...], reply: str, kind: str, key: str = ""
    ) -> Exchange | None:
        carrier = pick(name, carriers, split, rng)
        return Exchange(carrier, reply, kind, key) if carrier else None

    choice = rng.random()
    if choice < 0.18:
        return say("again", AGAIN, previous.reply, previous.kind, previous.key)
    if choice < 0.24:
        return say("what-did-i-say", WHAT_DID_I_SAY, f"{QUOTING}{previous.user}", "talk")
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
        carrier, value = choose("about", ABOUT, tuple(fact.rows), split, rng)
        return Exchange(carrier.replace("{x}", value), fact.rows[value], fact.name, value)
    return None
