"""Settings that ask for several replies: what they give, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from voiceloop_parallel import hooks

from tests.llm.test_conversation import Talk
from tests.llm.test_engine import build, said
from voiceloop.errors import ConfigError
from voiceloop.llm.rules.sampling import Sampling, seeds
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "llm.best_of is 4, and at temperature 0 all replies are the same"),
        ({"temperature": 0.8, "scorer": "likelyhood"}, "there is no scorer called 'likelyhood'"),
    ],
)
def test_a_choice_among_replies_that_would_be_none_is_refused(options, message):
    with pytest.raises(ConfigError) as caught:
        hooks(LlmConfig(best_of=4, **options))
    assert caught.value.message.startswith(message) and caught.value.hint


@pytest.mark.parametrize("by", ["clause", "reply"])
def test_the_best_of_several_replies_is_that_of_one_of_their_seeds(parallel_pack, folders, by):
    options = {"max_new_tokens": 20, "context": 200, "temperature": 0.7, "seed": 8}
    llm = build(folders / "target", folders / "draft", best_of=4, best_of_for=by, **options)
    assert build(folders / "target", best_of=1, temperature=0)._hook is None
    talk = llm.conversation()
    first = next(i for i in talk.reply("What is it?", 1) if isinstance(i, TokenBurst))
    assert first.facts["unchosen"] > 0
    _, talk = said(llm)
    single = build(folders / "target", **options)
    assert talk.ids in [said(single, seed=seed)[1].ids for seed in seeds(8, 4)]


class Parallel(Talk):
    """Does what `Talk` does in conversations with several replies at once."""

    makers = st.sampled_from(
        [
            *(LlmConfig(best_of=3, best_of_for=by, temperature=1.0) for by in ("clause", "reply")),
            *(LlmConfig(branches=count) for count in (1, 2)),
        ]
    ).map(hooks)

    @initialize(
        draft=Talk.drafts, length=Talk.lengths, kept=Talk.counts, slots=Talk.counts, hook=makers
    )
    def begin(self, draft, length, kept, slots, hook):
        super().begin(draft, length, kept, slots, hook)
        self.looks = [iter(()) for _ in self.turns]

    @rule(which=Talk.which, text=Talk.texts, after=st.booleans())
    def ahead(self, which, text, after):
        """Something is begun ahead, which goes on beside all else."""
        turn = self.turns[which] + after
        self.looks[which] = self.conversations[which].ahead(text, turn) or iter(())

    @rule(which=Talk.which, steps=st.integers(0, 40))
    def look(self, which, steps):
        for _ in itertools.islice(self.looks[which], steps):
            pass


@pytest.mark.parametrize(
    ("runs", "steps"),
    [
        pytest.param(15, 20, id="quick"),
        pytest.param(50, 40, id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.9, seed=3)], ids=["greedy", "sampled"])
def test_whatever_happens_the_live_caches_equal_a_fresh_prefill(workshop, sampling, runs, steps):
    machine = type("Machine", (Parallel,), {"workshop": workshop, "sampling": sampling})
    own = settings(max_examples=runs, stateful_step_count=steps)
    run_state_machine_as_test(machine, settings=own)
