"""Answers about the conversation itself, about facts and the assistant, and those left to chance.

A fact is text in the user's own words. If a tool of the user's own may fulfil a wish, the language
model answers. The seed of the context decides what is left to chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from voiceloop.skills.known import Answer, Fact, SkillContext, SkillRequest
from voiceloop.skills.phrases import Phrases, templates
from voiceloop.skills.words import plain, spelled

ENDS = ".!?…"
MOST_STEPS = 9
"""Maximum number of steps by which the voice changes at once."""
_FURTHEST = {"louder": "loudest", "softer": "softest", "slower": "slowest", "faster": "fastest"}


def _recall(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Repeat what the user asked last, or first."""
    if not known.asked:
        return Answer(phrases.says["asked nothing"], aside=True)
    said = known.asked[0 if request.kind == "recall_first" else -1].strip()
    key = "asked" if said.endswith("?") else "said"
    return Answer(phrases.says[key].format(said=_ended(said)), aside=True)


def _ended(text: str) -> str:
    return text if text.endswith(tuple(ENDS)) else f"{text}."


def _repeat(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(known.heard or phrases.says["nothing said"], aside=True)


def _repeat_changed(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Repeat the last reply slower, or louder."""
    change = _change(replace(request, kind=request.kind.removeprefix("repeat_")), known, phrases)
    if change.voice is None:  # it goes no further, and the answer says so
        return replace(change, text=f"{change.text} {known.heard}".strip())
    return replace(_repeat(request, known, phrases), voice=change.voice)


def _spell(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say the letters of a word."""
    word = request.values["word"]
    letters = (letter if letter == "ß" else letter.upper() for letter in word)
    return Answer(f"{', '.join(letters)}.") if word.isalpha() else None


def _stop(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer("", aside=True)


def _courtesy(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer thanks, or a goodbye."""
    return Answer(phrases.says[request.kind], ends=request.kind != "thanks", aside=True)


def _change(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Make this reply and later ones louder, softer, slower, faster, or normal again."""
    change = request.kind
    if change in ("slower", "faster") and not known.paced:
        return Answer(phrases.says["one pace"], aside=True)
    voice = known.voice
    for _ in range(min(request.values.get("n", 1), MOST_STEPS)):
        voice = voice.changed(change)
    if voice == known.voice and change in _FURTHEST:
        return Answer(phrases.says[_FURTHEST[change]], aside=True)
    return Answer(phrases.says[change], voice=voice, aside=True)


def _volume(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set the volume to a percentage of its range, to a level from 0 to 10, or to the middle."""
    percent: int = request.values.get("percent", 10 * request.values.get("n", 5))
    percent = {"loudest": 100, "softest": 0}.get(request.kind, percent)
    said = phrases.says[request.kind].format(percent=percent)
    return Answer(said, voice=known.voice.at(percent), aside=True) if percent <= 100 else None


def _told(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer questions about the assistant, and wishes about its voice that it cannot fulfil."""
    return Answer(phrases.says[request.kind], ends=request.kind == "sleep", aside=True)


MOST_FACTS = 50
"""Maximum number of facts of a conversation."""
MOST_TOLD = 5
"""Maximum number of facts in an answer. If more are known, only the newest are said."""


def _remember(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Remember a fact in the user's words. If a fact with the same words is known, confirm it and
    add nothing. If `MOST_FACTS` are known, refuse."""
    text = request.values["fact"].strip()
    key = "remembered" if known.keeps else "remembered for now"
    if any(_same(fact.text, text) for fact in known.facts):
        return Answer(phrases.says[key])
    if len(known.facts) >= MOST_FACTS:
        return Answer(phrases.says["too many facts"].format(count=MOST_FACTS))
    return Answer(phrases.says[key], remembers=text)


def _facts(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say the newest facts."""
    if not known.facts:
        return Answer(phrases.says["no facts"], aside=True)
    told = [_sentence(fact.text) for fact in known.facts[-MOST_TOLD:]]
    key = "facts" if len(told) == len(known.facts) else "newest facts"
    count = len(known.facts)
    return Answer(phrases.says[key].format(count=count, list=" ".join(told)), aside=True)


def _forget_last(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer "forget that". If a fact was kept in the previous turn, forget it. Otherwise the user
    wants to drop the subject, so say nothing."""
    found = [fact for fact in known.facts if fact.number == known.just_kept]
    return _forgotten(found, phrases) if found else Answer("", aside=True)


def _forget_fact(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Forget the fact that the user names. If there are no facts, return None, because the request
    means something else."""
    if not known.facts:
        return None
    text = request.values["fact"].strip()
    found = [fact for fact in known.facts if _same(fact.text, text)]
    return _forgotten(found, phrases) if found else Answer(phrases.says["no such fact"], aside=True)


def _forget_all(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return (
        _forgotten(list(known.facts), phrases) if known.facts else _facts(request, known, phrases)
    )


def _forgotten(facts: list[Fact], phrases: Phrases) -> Answer:
    struck = frozenset(fact.number for fact in facts)
    return Answer(phrases.says["forgotten"], strikes=struck, aside=True)


def _same(one: str, other: str) -> bool:
    return [word.text for word in spelled(one)] == [word.text for word in spelled(other)]


def _sentence(text: str) -> str:
    """Return a fact as a sentence: with a capital, and a mark at its end."""
    return _ended(text[:1].upper() + text[1:])


LACKS: Mapping[str, str] = {"web": "internet", "sight": "camera", "calls": "phone"}
"""What a system prompt says that the assistant does not have, by the kind of the wish."""
CONTROLS: Mapping[str, str] = {
    "music": "play no music",
    "home": "control no lights or other devices",
}
"""What a system prompt says that the assistant does not do, by the kind of the wish."""
MOST_TOOLS = 5
"""Maximum number of tools that an answer names."""


def cannot(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say that a wish cannot be fulfilled, and what can be done in its place."""
    return Answer(phrases.says[request.kind])


def serve(tools: Sequence[str], kind: str, code: str) -> bool:
    """Return whether one of `tools` may fulfil a wish of this kind, by the words in its text."""
    stems = f"{templates('en').tools[kind]} {templates(code).tools[kind]}".split()
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", " ".join(tools))
    words = re.findall(r"[^\W\d_]+", text)
    return any(plain(word).startswith(tuple(stems)) for word in words)


def limits(tools: Sequence[str]) -> str:
    """Return the sentences of the system prompt that say what the assistant cannot do. `tools` are
    those that the language model may call, each as `name: description`."""
    lacks, controls = (
        [what for kind, what in kinds.items() if not serve(tools, kind, "en")]
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


def _abilities(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say what the rules can do, and the names of tools."""
    if known.acts:
        return None
    names = [tool.partition(":")[0].replace("_", " ").strip() for tool in known.tools[:MOST_TOOLS]]
    more = phrases.says["tools"].format(list=phrases.listed(names)) if names else ""
    return Answer(f"{phrases.says['abilities']} {more}".strip(), aside=True)


def _self(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say who the assistant is, unless the user's system prompt says that."""
    return None if known.persona else Answer(phrases.says[request.kind], aside=True)


def _keeping(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say how long facts are remembered, and how to have one remembered."""
    return Answer(phrases.says["keeping" if known.keeps else "keeping for now"], aside=True)


MOST_DICE = 10


def _coin(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(phrases.says[Random(known.seed).choice(("heads", "tails"))])


def _dice(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Roll dice. One die with six sides is rolled unless the user says something else."""
    count, sides = request.values.get("n", 1), request.values.get("sides", 6)
    if not 1 <= count <= MOST_DICE or sides < 2:
        return None
    chance = Random(known.seed)
    found = [chance.randint(1, sides) for _ in range(count)]
    numbers = phrases.listed([str(number) for number in found])
    key = "die" if count == 1 else "dice"
    return Answer(phrases.says[key].format(numbers=numbers, total=sum(found)))


def _pick(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Pick a number between two others, which count too."""
    low, high = sorted((request.values.get("a", 1), request.values.get("b", 10)))
    return Answer(phrases.says["pick"].format(number=Random(known.seed).randint(low, high)))


ANSWERS: Mapping[str, Any] = {
    "recall": _recall,
    "recall_first": _recall,
    "repeat": _repeat,
    "stop": _stop,
    **dict.fromkeys(("thanks", "done", "goodbye", "night"), _courtesy),
    **dict.fromkeys(("louder", "softer", "slower", "faster", "normal"), _change),
    **dict.fromkeys(("repeat_slower", "repeat_louder"), _repeat_changed),
    **dict.fromkeys(("volume", "loudest", "softest"), _volume),
    **dict.fromkeys(("here", "mute", "whisper", "other_voice", "other_language", "sleep"), _told),
    "spell": _spell,
    "remember": _remember,
    "facts": _facts,
    "forget_last": _forget_last,
    "forget_fact": _forget_fact,
    "forget_all": _forget_all,
    "abilities": _abilities,
    **dict.fromkeys(("who", "name"), _self),
    "keeping": _keeping,
    "coin": _coin,
    "dice": _dice,
    "pick": _pick,
}
