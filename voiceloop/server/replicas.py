"""The rules by which a cluster runs replicas of the service: how many, and when one must stop.

`voiceloop.cluster` runs the replicas with Ray. This module knows only the form of Ray's settings,
and of the details that Ray gives about its replicas.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from voiceloop.errors import ConfigError

NAMES = ("options", "replicas", "speakers", "cpus", "gpus")
"""The arguments of `voiceloop.cluster:app`."""


def check_names(given: Mapping[str, str]) -> None:
    """Raise ConfigError if `given` has an argument that does not exist."""
    if unknown := sorted(set(given) - set(NAMES)):
        raise ConfigError(
            f"voiceloop.cluster:app knows no {' and '.join(unknown)}",
            f"it takes {', '.join(NAMES)}",
        )


def stopping(details: Mapping[str, Any], app: str, deployment: str, replica: str) -> bool:
    """Return whether a replica must stop, according to the details from Serve's controller.

    A replica that is not in the details must stop too.
    """
    found = details["applications"].get(app, {}).get("deployments", {}).get(deployment, {})
    states = {one["replica_id"]: str(one["state"]) for one in found.get("replicas", ())}
    return not states.get(replica, "STOPPING").endswith(("STARTING", "RUNNING", "UPDATING"))


def wanted_replicas(speaking: Collection[float], speakers: int) -> int:
    """Return how many replicas there should be. `speaking` has for each replica the number of its
    sessions that are in a turn. A replica carries up to `speakers` of these."""
    return max(1, math.ceil(sum(speaking) / speakers))


def check_closed(environ: Mapping[str, str]) -> None:
    """Raise ConfigError if anybody who reaches Ray's ports may run programs here.

    Ray listens on all addresses of a machine.
    """
    if environ.get("RAY_AUTH_MODE") != "token":
        raise ConfigError(
            "Ray would let in whoever reaches its ports, on all addresses of its machines",
            "set RAY_AUTH_MODE=token before `ray start`; `ray get-auth-token --generate` makes one",
        )


def scale(given: Mapping[str, str], policy: str) -> dict[str, Any]:
    """Return Ray Serve's settings for the number of replicas. `given` may have a `replicas` such as
    `2` or `1-4`, and `speakers`. `policy` is the import path of the class that decides the number.
    Raises ConfigError."""
    least, separator, most = given.get("replicas", "1").partition("-")
    try:
        low, high = int(least), int(most if separator else least)
    except ValueError:
        low = high = 0
    if not 1 <= low <= high:
        raise ConfigError(f"replicas cannot be {given['replicas']!r}", "write 2, or 1-4")
    if not separator:
        return {"num_replicas": low}
    speakers = int(number(given, "speakers", 4))
    return {
        "num_replicas": "auto",
        "autoscaling_config": {
            "min_replicas": low,
            "max_replicas": high,
            "upscale_delay_s": 5,
            "downscale_delay_s": 300,
            "policy": {
                "policy_function": policy,
                "policy_kwargs": {"speakers": speakers},
            },
        },
    }


def number(given: Mapping[str, str], name: str, default: float) -> float:
    """Return the number `name` of `given`. Raises ConfigError if it is no number, or negative."""
    try:
        found = float(given.get(name, default))
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        raise ConfigError(f"{name} cannot be {given[name]!r}", "give a number")
    return found
