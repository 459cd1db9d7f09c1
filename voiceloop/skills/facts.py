"""Answers that remember facts, repeat them and forget them. A fact is text in the user's own
words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voiceloop.skills.known import Answer, Fact, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.values import SkillRequest
from voiceloop.skills.words import spelled

MOST_FACTS = 50
"""Maximum number of facts of a conversation."""
MOST_TOLD = 5
"""Maximum number of facts in an answer. If more are known, only the newest are said."""
ENDS = ".!?…"


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
    text = text[:1].upper() + text[1:]
    return text if text.endswith(tuple(ENDS)) else f"{text}."


ANSWERS: Mapping[str, Any] = {
    "remember": _remember,
    "facts": _facts,
    "forget_last": _forget_last,
    "forget_fact": _forget_fact,
    "forget_all": _forget_all,
}
