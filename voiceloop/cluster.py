"""voiceloop on a Ray cluster: replicas of the whole service, behind Ray Serve.

    serve run voiceloop.cluster:app options="--preset cpu --api-key-file keys" replicas=2

A replica is one process with all models, like `voiceloop serve`. Ray starts and replaces replicas,
and its HAProxy gives each new client to the replica with the fewest clients. If a replica has gone,
its clients resume their sessions at other replicas, if `--server.store` in `options` names a Redis.

Ray does not tell a replica that it must stop. It only waits until the requests of the replica end,
and a websocket is one request as long as it lasts. So each replica looks at its own state in Ray,
and drains when it must stop: it lets each conversation end its turn, and takes no new clients.
docs/deploy.md has the settings of Ray that matter.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import ray
from ray import serve
from ray.exceptions import RayError

from voiceloop.errors import ConfigError
from voiceloop.server.asgi import VARIABLE, Application, command_of, own_service
from voiceloop.server.command import guarded
from voiceloop.server.replicas import (
    check_closed,
    check_names,
    number,
    scale,
    stopping,
    wanted_replicas,
)
from voiceloop.server.service import CLOSING_S, Service

logger = logging.getLogger(__name__)

LOOK_S = 1.0
"""Interval at which a replica checks whether it must stop, in seconds."""


class DrainingApplication(Application):
    """The service of one replica, which drains when Ray wants the replica to stop."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Keep the models loaded while the context lasts. Drain when the replica must stop."""
        async with super().open(), anyio.create_task_group() as tasks:
            assert self.service is not None, "it has just been opened"
            tasks.start_soon(self._watch, self.service)
            yield
            tasks.cancel_scope.cancel()

    async def _watch(self, service: Service) -> None:
        """Wait until the replica must stop, and drain `service`."""
        context = serve.get_replica_context()
        controller: Any = ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve")
        while True:
            await anyio.sleep(LOOK_S)
            try:
                details = await controller.get_serve_instance_details.remote()
            except RayError as error:
                logger.warning("Ray does not answer", extra={"why": str(error)})
                continue
            if stopping(details, context.app_name, context.deployment, context.replica_tag):
                logger.info("ending", extra={"clients": service.connections})
                await service.drain()
                return


application = DrainingApplication(own_service)
"""The application of a replica's process. The environment variable `VARIABLE` has its options."""


def _application() -> Application:
    return application


@serve.deployment(name="Voice", health_check_period_s=5)
@serve.ingress(_application)
class VoiceReplica:
    """The replica as a deployment of Ray Serve."""

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the load of this replica, from which Ray computes the number of replicas."""
        return {"speaking": speaking()}  # Ray copies what this class uses, but not functions


def speaking() -> float:
    """Return the number of clients of the replica in this process that are in a turn."""
    return float(application.service.speaking if application.service else 0)


class Policy:
    """The rule `wanted_replicas` as an autoscaling policy of Ray."""

    def __init__(self, speakers: int) -> None:
        self._speakers = speakers

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """Return the number of replicas that are wanted, and an empty state."""
        metrics = context.aggregated_metrics or {}
        return wanted_replicas(metrics.get("speaking", {}).values(), self._speakers), {}


def app(given: Mapping[str, str]) -> serve.Application:
    """Return the application that `serve run` and `serve deploy` run.

    `given` may have `options` (those of `voiceloop serve`), `replicas` (a number, or `MIN-MAX`),
    `speakers` (how many sessions of one replica may be in a turn at once), `cpus` and `gpus` (of
    each replica). Raises ConfigError for arguments or options that are wrong.
    """
    check_names(given)
    check_closed(os.environ)
    options = shlex.split(given.get("options", ""))
    command = command_of(options)
    if not command.behind_proxy:
        raise ConfigError("replicas are behind Ray's proxy", "give --behind-proxy, and a key")
    guarded(command)
    limits = command.settings.server
    if not limits.store:
        logger.warning("without server.store, clients of a replica that ends cannot resume")
    cpus, gpus = number(given, "cpus", 1), number(given, "gpus", 0)
    return VoiceReplica.options(  # pyright: ignore[reportUnknownMemberType]
        ray_actor_options={
            "num_cpus": cpus,
            "num_gpus": gpus,
            # No key is in the options: everybody who sees the cluster's state sees them.
            "runtime_env": {"env_vars": {VARIABLE: shlex.join(options)}},
        },
        # A websocket is one request as long as it lasts; pages and probes are requests too.
        max_ongoing_requests=2 * limits.max_sessions + 16,
        # Draining and closing take the first two terms; the 30 s are for Ray itself.
        graceful_shutdown_timeout_s=limits.drain_s + 2 * CLOSING_S + 30,
        **scale(given, "voiceloop.cluster:Policy"),
    ).bind()


def run(options: list[str], host: str, port: int) -> None:
    """Run a replica until a signal ends it. Ray's proxy listens at `host` and `port`.

    The replica runs on the cluster to which this machine belongs, or else on a new cluster.
    `options` are those of `voiceloop serve`. Raises ConfigError if they are wrong.
    """
    wanted = app({"options": shlex.join(options)})
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # otherwise Ray would just die
    try:
        serve.start(http_options={"host": host, "port": port})
        serve.run(wanted, blocking=True)
    finally:
        serve.shutdown()  # otherwise HAProxy would go on running
