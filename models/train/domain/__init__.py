"""The starter domain: what a person says to the demo assistant, and what it answers.

One generator feeds both models: the recogniser learns `utterance`s, the language models learn
whole `dialogue`s. `split="train"` never yields what `split="heldout"` is made of: a tenth of the
phrasings, and a tenth of the combinations of a phrasing with what fills its slot.
"""

from __future__ import annotations

from models.train.domain.dialogues import Message, dialogue, exchanges, utterance
from models.train.domain.examinations import (
    DECLINES,
    contrast_pairs,
    factual,
    out_of_domain,
    questions,
)
from models.train.domain.exchange import Exchange
from models.train.domain.followups import QUOTING

__all__ = [
    "DECLINES",
    "QUOTING",
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
