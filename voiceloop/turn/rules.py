"""Loads the rules of turn-taking that a package brings."""

from __future__ import annotations

from voiceloop.config import TurnConfig
from voiceloop.dialogue.bargein import INTERRUPTION_RULES
from voiceloop.dialogue.endpoint import ENDPOINT_RULES
from voiceloop.engines import load_rule


def load_rules(turns: TurnConfig) -> None:
    """Add the configured rules to those that the core knows. Raises ConfigError for a name that no
    rule has."""
    if turns.endpoint not in ENDPOINT_RULES:
        ENDPOINT_RULES[turns.endpoint] = load_rule("endpoint", turns.endpoint, ENDPOINT_RULES)
    if turns.interruption not in INTERRUPTION_RULES:
        rule = load_rule("interruption", turns.interruption, INTERRUPTION_RULES)
        INTERRUPTION_RULES[turns.interruption] = rule
