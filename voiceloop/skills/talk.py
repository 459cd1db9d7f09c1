"""Answers about the conversation itself, about facts and the assistant, and those left to chance.

A fact is text in the user's own words. If a tool of the user's own may fulfil a wish, the language
model answers. The seed of the context decides what is left to chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from voiceloop.skills.known import Answer, Answers, Fact, SkillRequest
from voiceloop.skills.phrases import templates
from voiceloop.skills.words import plain, spelled

ANSWERS = Answers()
MOST_STEPS = 9
"""Maximum number of steps by which the voice changes at once."""
MOST_FACTS = 50
"""Maximum number of facts of a conversation."""
MOST_TOLD = 5
"""Maximum number of facts in an answer. If more are known, only the newest are said."""
MOST_TOOLS = 5
"""Maximum number of tools that an answer names."""
MOST_DICE = 10
_FURTHEST = {"louder": "loudest", "softer": "softest", "slower": "slowest", "faster": "fastest"}


# ---- what was said


@ANSWERS.register("recall", "recall_first")
def _recall(request: SkillRequest) -> Answer:
    """Repeat what the user asked last, or first."""
    asked = request.known.asked
    if not asked:
        return request.aside("asked nothing")
    said = asked[0 if request.kind == "recall_first" else -1].strip()
    return request.aside("asked" if said.endswith("?") else "said", said=_ended(said))


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


@ANSWERS.register("repeat")
def _repeat(request: SkillRequest) -> Answer:
    heard = request.known.heard
    return Answer(heard, aside=True) if heard else request.aside("nothing said")


@ANSWERS.register("repeat_slower", "repeat_louder")
def _repeat_changed(request: SkillRequest) -> Answer:
    """Repeat the last reply slower, or louder."""
    change = _change(replace(request, kind=request.kind.removeprefix("repeat_")))
    if change.voice is None:  # it goes no further, and the answer says so
        return replace(change, text=f"{change.text} {request.known.heard}".strip())
    return replace(_repeat(request), voice=change.voice)


@ANSWERS.register("spell")
def _spell(request: SkillRequest) -> Answer | None:
    """Say the letters of a word."""
    word = request.values["word"]
    letters = (letter if letter == "ß" else letter.upper() for letter in word)
    return Answer(f"{', '.join(letters)}.") if word.isalpha() else None


@ANSWERS.register("stop")
def _stop(request: SkillRequest) -> Answer:
    return Answer("", aside=True)


@ANSWERS.register("thanks", "here", "mute", "whisper", "other_voice", "other_language")
def _told(request: SkillRequest) -> Answer:
    """Answer thanks, questions about the assistant, and wishes about its voice that it cannot
    fulfil."""
    return request.aside(request.kind)


@ANSWERS.register("done", "goodbye", "night", "sleep")
def _end(request: SkillRequest) -> Answer:
    """Answer a goodbye."""
    return replace(request.aside(request.kind), ends=True)


# ---- how replies sound


@ANSWERS.register("louder", "softer", "slower", "faster", "normal")
def _change(request: SkillRequest) -> Answer:
    """Make this reply and later ones louder, softer, slower, faster, or normal again."""
    change, voice = request.kind, request.known.voice
    if change in ("slower", "faster") and not request.known.paced:
        return request.aside("one pace")
    for _ in range(min(request.values.get("n", 1), MOST_STEPS)):
        voice = voice.changed(change)
    if voice == request.known.voice and change in _FURTHEST:
        return request.aside(_FURTHEST[change])
    return replace(request.aside(change), voice=voice)


@ANSWERS.register("volume", "loudest", "softest")
def _volume(request: SkillRequest) -> Answer | None:
    """Set the volume to a percentage of its range, to a level from 0 to 10, or to the middle."""
    percent: int = request.values.get("percent", 10 * request.values.get("n", 5))
    percent = {"loudest": 100, "softest": 0}.get(request.kind, percent)
    said = request.aside(request.kind, percent=percent)
    return replace(said, voice=request.known.voice.at(percent)) if percent <= 100 else None


# ---- facts


@ANSWERS.register("remember")
def _remember(request: SkillRequest) -> Answer:
    """Remember a fact in the user's words. If a fact with the same words is known, confirm it and
    add nothing. If `MOST_FACTS` are known, refuse."""
    known = request.known
    found = request.reply("remembered" if known.keeps else "remembered for now")
    if _like(request.values["fact"], known.facts):
        return found
    if len(known.facts) >= MOST_FACTS:
        return request.reply("too many facts", count=MOST_FACTS)
    return replace(found, remembers=request.values["fact"].strip())


@ANSWERS.register("facts")
def _facts(request: SkillRequest) -> Answer:
    """Say the newest facts."""
    facts = request.known.facts
    if not facts:
        return request.aside("no facts")
    texts = [fact.text for fact in facts[-MOST_TOLD:]]
    told = " ".join(_ended(text[:1].upper() + text[1:]) for text in texts)
    key = "facts" if len(texts) == len(facts) else "newest facts"
    return request.aside(key, count=len(facts), list=told)


@ANSWERS.register("forget_last")
def _forget_last(request: SkillRequest) -> Answer:
    """Answer "forget that". If a fact was kept in the previous turn, forget it. Otherwise the user
    wants to drop the subject, so say nothing."""
    known = request.known
    found = [fact for fact in known.facts if fact.number == known.just_kept]
    return _forgotten(request, found) if found else Answer("", aside=True)


@ANSWERS.register("forget_fact")
def _forget_fact(request: SkillRequest) -> Answer | None:
    """Forget the fact that the user names. If there are no facts, return None, because the request
    means something else."""
    if not request.known.facts:
        return None
    found = _like(request.values["fact"], request.known.facts)
    return _forgotten(request, found) if found else request.aside("no such fact")


@ANSWERS.register("forget_all")
def _forget_all(request: SkillRequest) -> Answer:
    facts = request.known.facts
    return _forgotten(request, facts) if facts else request.aside("no facts")


def _forgotten(request: SkillRequest, facts: Iterable[Fact]) -> Answer:
    struck = frozenset(fact.number for fact in facts)
    return replace(request.aside("forgotten"), strikes=struck)


def _like(text: str, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts with the same words as `text`."""

    def words(text: str) -> list[str]:
        return [word.text for word in spelled(text)]

    return [fact for fact in facts if words(fact.text) == words(text)]


# ---- what the assistant is and can do

LACKS: Mapping[str, str] = {"web": "internet", "sight": "camera", "calls": "phone"}
"""What a system prompt says that the assistant does not have, by the kind of the wish."""
CONTROLS: Mapping[str, str] = {
    "music": "play no music",
    "home": "control no lights or other devices",
}
"""What a system prompt says that the assistant does not do, by the kind of the wish."""


def cannot(request: SkillRequest) -> Answer:
    """Say that a wish cannot be fulfilled, and what can be done in its place."""
    return request.reply(request.kind)


def left_to_model(request: SkillRequest) -> bool:
    """Return whether the language model answers a wish, because it or a tool may fulfil it."""
    known = request.known
    return known.acts or _serve(known.tools, request.kind, request.phrases.code)


def _serve(tools: Sequence[str], kind: str, code: str) -> bool:
    """Return whether one of `tools` may fulfil a wish of this kind, by the words in its text."""
    stems = f"{templates('en').tools[kind]} {templates(code).tools[kind]}".split()
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", " ".join(tools))
    words = re.findall(r"[^\W\d_]+", text)
    return any(plain(word).startswith(tuple(stems)) for word in words)


def limits(tools: Sequence[str]) -> str:
    """Return the sentences of the system prompt that say what the assistant cannot do. `tools` are
    those that the language model may call, each as `name: description`."""
    lacks, controls = (
        [what for kind, what in kinds.items() if not _serve(tools, kind, "en")]
        for kinds in (LACKS, CONTROLS)
    )
    said = f"You have no {_either(lacks)}." if lacks else ""
    said += f" You {' and '.join(controls)}." if controls else ""
    if not said:
        return ""
    # Without the last sentence, a small model refuses to help with what it is only told.
    asked = "If asked to do one of these, say that you cannot."
    return f"{said.strip()} {asked} To anything else, reply like a friend."


def _either(things: Sequence[str]) -> str:
    return f"{', '.join(things[:-1])} or {things[-1]}" if things[1:] else things[0]


@ANSWERS.register("abilities")
def _abilities(request: SkillRequest) -> Answer | None:
    """Say what the rules can do, and the names of tools."""
    known, phrases = request.known, request.phrases
    if known.acts:
        return None
    names = [tool.partition(":")[0].replace("_", " ").strip() for tool in known.tools[:MOST_TOOLS]]
    more = f" {phrases.say('tools', list=phrases.listed(names))}" if names else ""
    return Answer(f"{phrases.say('abilities')}{more}", aside=True)


@ANSWERS.register("who", "name")
def _self(request: SkillRequest) -> Answer | None:
    """Say who the assistant is, unless the user's system prompt says that."""
    return None if request.known.persona else request.aside(request.kind)


@ANSWERS.register("keeping")
def _keeping(request: SkillRequest) -> Answer:
    """Say how long facts are remembered, and how to have one remembered."""
    return request.aside("keeping" if request.known.keeps else "keeping for now")


# ---- chance


@ANSWERS.register("coin")
def _coin(request: SkillRequest) -> Answer:
    return request.reply(Random(request.known.seed).choice(("heads", "tails")))


@ANSWERS.register("dice")
def _dice(request: SkillRequest) -> Answer | None:
    """Roll dice. One die with six sides is rolled unless the user says something else."""
    count, sides = request.values.get("n", 1), request.values.get("sides", 6)
    if not 1 <= count <= MOST_DICE or sides < 2:
        return None
    chance = Random(request.known.seed)
    found = [chance.randint(1, sides) for _ in range(count)]
    numbers = request.phrases.listed([str(number) for number in found])
    return request.reply("die" if count == 1 else "dice", numbers=numbers, total=sum(found))


@ANSWERS.register("pick")
def _pick(request: SkillRequest) -> Answer:
    """Pick a number between two others, which count too."""
    low, high = sorted((request.values.get("a", 1), request.values.get("b", 10)))
    return request.reply("pick", number=Random(request.known.seed).randint(low, high))
