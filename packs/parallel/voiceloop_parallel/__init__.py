"""Several replies at once: the best of several candidates, and replies begun ahead."""

from __future__ import annotations

from voiceloop.errors import ConfigError
from voiceloop.llm.decode.hook import MakeHook
from voiceloop.settings.config import LlmConfig
from voiceloop_parallel.ahead import Ahead
from voiceloop_parallel.candidates import BestOf, Candidates, scorer


def hooks(config: LlmConfig) -> MakeHook:
    """Return the function that makes the hook for `config`, which asks for one.

    The best of several replies excludes replies begun ahead, because the reply that is chosen may
    not be the one that was begun. Raises ConfigError for a scorer that is not registered. Raises it
    also for settings with which all candidates would be the same.
    """
    if config.best_of == 1:
        return lambda speculator, target, sampling, template, ends: Ahead(
            speculator, target, sampling, template.user_to_reply, ends, config.branches
        )
    if config.temperature == 0:
        raise ConfigError(
            f"llm.best_of is {config.best_of}, and at temperature 0 all replies are the same",
            "set llm.temperature, to 0.8 for example, or llm.best_of to 1",
        )
    how = BestOf(config.best_of, scorer(config.scorer), config.best_of_for == "clause")
    return lambda speculator, target, sampling, _, ends: Candidates(
        speculator, target, sampling, how, ends
    )
