"""How many replicas a cluster runs, and when one is to stop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.server.replicas import (
    check_closed,
    check_names,
    scale,
    stopping,
    wanted_replicas,
)

pytestmark = pytest.mark.pure


@given(st.lists(st.integers(0, 8), max_size=20), st.integers(1, 8))
def test_there_are_enough_replicas_for_who_speaks_and_no_more(
    speaking: list[int], speakers: int
) -> None:
    wanted, people = wanted_replicas(speaking, speakers), sum(speaking)
    assert wanted >= 1
    assert wanted * speakers >= people
    assert wanted == 1 or (wanted - 1) * speakers < people


def details(**states: str) -> dict[str, Any]:
    replicas = [{"replica_id": name, "state": state} for name, state in states.items()]
    return {"applications": {"voice": {"deployments": {"Voice": {"replicas": replicas}}}}}


@pytest.mark.parametrize(
    ("state", "over"), [("RUNNING", False), ("STARTING", False), ("STOPPING", True)]
)
def test_a_replica_finds_its_own_state(state: str, over: bool) -> None:
    found = details(other="RUNNING", mine=state)
    assert stopping(found, "voice", "Voice", "mine") == over
    assert not stopping(found, "voice", "Voice", "other")


def test_a_replica_that_is_not_listed_is_to_stop() -> None:
    assert stopping(details(other="RUNNING"), "voice", "Voice", "mine")
    assert stopping({"applications": {}}, "voice", "Voice", "mine")


def test_the_number_of_replicas_is_fixed_or_follows_the_load() -> None:
    assert scale({"replicas": "3"}, "a:B") == {"num_replicas": 3}
    found = scale({"replicas": "1-4", "speakers": "6"}, "a:B")["autoscaling_config"]
    assert (found["min_replicas"], found["max_replicas"]) == (1, 4)
    assert found["policy"] == {"policy_function": "a:B", "policy_kwargs": {"speakers": 6}}


@pytest.mark.parametrize("replicas", ["", "0", "4-1", "many", "-1", "1-"])
def test_numbers_that_cannot_be_are_told(replicas: str) -> None:
    with pytest.raises(ConfigError, match="replicas cannot be"):
        scale({"replicas": replicas}, "a:B")


def test_what_is_unknown_or_open_is_refused() -> None:
    with pytest.raises(ConfigError, match="knows no replica"):
        check_names({"replica": "2"})
    for environ in ({}, {"RAY_AUTH_MODE": "disabled"}):
        with pytest.raises(ConfigError, match="whoever reaches its ports"):
            check_closed(environ)
    check_closed({"RAY_AUTH_MODE": "token"})
