"""The files of deploy/ agree with the program and with each other; no image is built for that."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import anyio
import pytest
import yaml

from voiceloop.bundled import bundled
from voiceloop.cli.main import COMMANDS
from voiceloop.errors import ConfigError
from voiceloop.server.access.auth import Access, Allowed
from voiceloop.server.access.keys import VARIABLE, Keyring, read_keys
from voiceloop.server.command import Serve
from voiceloop.server.ops.metrics import Metrics
from voiceloop.server.port import Binding
from voiceloop.server.routes import METRICS, HttpRequest, Routes, load
from voiceloop.server.service import CLOSING_S
from voiceloop.settings.config import ServerConfig
from voiceloop.settings.flags import parse

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
TARGETS = ("cpu", "cuda")
KEY = "correct-horse-battery-staple"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


class Stage(NamedTuple):
    """A stage of the Dockerfile."""

    base: str
    steps: list[tuple[str, str]]
    """Its instructions: the first word, and the rest."""

    def all(self, word: str) -> list[str]:
        """What follows each instruction of that name."""
        return [rest for name, rest in self.steps if name == word]


def stages() -> dict[str, Stage]:
    """The stages of the Dockerfile by name; the arguments before the first are stage ''."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = {"": Stage("", [])}
    name = ""
    for instruction in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = instruction.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.split()
            found[name] = Stage(base, [])
        elif word:
            found[name].steps.append((word, " ".join(rest.split())))
    return found


STAGES = stages()


def of_image(target: str, word: str) -> str:
    """What an instruction says last in a target or the stages below it."""
    while target in STAGES:
        if said := STAGES[target].all(word):
            return said[-1]
        target = STAGES[target].base
    raise AssertionError(f"no {word}")


class _Loader(yaml.SafeLoader):
    """YAML with the tag by which compose takes a value away."""


_Loader.add_constructor("!reset", lambda loader, node: [])


def read(name: str) -> Any:
    return yaml.load((DEPLOY / name).read_text(encoding="utf-8"), _Loader)


SERVICES = read("compose.yaml")["services"]


def serve_of(argv: list[str]) -> Serve:
    """The command line of a container, as voiceloop reads it."""
    filled = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in argv]
    command = parse({name: kind for name, (kind, _) in COMMANDS.items()}, filled, files=[])
    assert isinstance(command, Serve)
    return command


def access_of(command: Serve, keys: Keyring | None) -> Access:
    """The access rules, as `voiceloop serve` makes them."""
    binding = Binding(command.host, command.port, bool(command.cert), command.behind_proxy)
    return Access(binding, keys, hosts=command.allow_host, origins=command.allow_origin)


IMAGE = serve_of(json.loads(of_image("cpu", "CMD")))
COMPOSED = serve_of(SERVICES["voiceloop"]["command"])
KEYS = Keyring([KEY])


def test_the_images_run_the_program() -> None:
    for target in TARGETS:
        (program,) = json.loads(of_image(target, "ENTRYPOINT"))
        assert program in PROJECT["project"]["scripts"]
        assert of_image(target, "CMD") == of_image("cpu", "CMD")


def test_the_images_do_not_run_as_root() -> None:
    for target in TARGETS:
        assert STAGES[target].steps[-1] == ("USER", "10001:10001")
        assert any(
            "useradd" in run and "--uid 10001 " in run for run in STAGES["common"].all("RUN")
        )


@pytest.mark.parametrize("command", [IMAGE, COMPOSED], ids=["image", "compose"])
def test_the_server_can_be_reached_from_outside_and_only_with_a_key(command: Serve) -> None:
    assert Binding(command.host).everywhere
    with pytest.raises(ConfigError, match="no API key"):
        access_of(command, None)
    assert access_of(command, KEYS).hosts >= {"localhost:8765", "voiceloop:8765"}


def test_the_ports_are_the_servers() -> None:
    assert of_image("cpu", "EXPOSE") == str(IMAGE.port) == str(COMPOSED.port)
    assert SERVICES["voiceloop"]["ports"] == [f"127.0.0.1:{IMAGE.port}:{IMAGE.port}"]


def test_the_health_check_asks_what_the_server_answers() -> None:
    site = load(bundled("web"))
    for command in (IMAGE, COMPOSED):
        routes = Routes(access_of(command, KEYS), site, Metrics(), full=lambda: False)
        assert health(routes, command.port) == 1  # the models are being loaded
        routes.unready = ""
        assert health(routes, command.port) == 0
        routes.unready = "the server is going down"
        assert health(routes, command.port) == 1


def health(routes: Routes, port: int) -> int:
    """Return the exit status of the health check, if `routes` were at that port."""
    _, _, words = of_image("cpu", "HEALTHCHECK").partition("CMD ")
    python, option, program = json.loads(words)
    assert (python, option) == ("python", "-c")
    assert program.count(str(IMAGE.port)) == 1
    with answering(routes, port) as actual:
        program = program.replace(str(IMAGE.port), str(actual))
        return subprocess.run([sys.executable, option, program], check=False).returncode


@contextmanager
def answering(routes: Routes, port: int) -> Iterator[int]:
    """Answer plain requests by `routes`, which believe that they are at `port`; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = [
                (name, value.replace(actual, str(port))) for name, value in self.headers.items()
            ]
            peer = self.client_address[0]
            answer = anyio.run(routes.answer, HttpRequest("GET", self.path, headers, peer))
            assert answer is not None
            self.send_response(answer.status_code)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        actual = str(server.server_port)
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_container_has_the_time_to_end_conversations() -> None:
    seconds = re.fullmatch(r"(\d+)s", SERVICES["voiceloop"]["stop_grace_period"])
    assert seconds
    assert int(seconds[1]) > ServerConfig().drain_s + CLOSING_S
    assert of_image("cpu", "STOPSIGNAL") == "SIGTERM"


def test_the_users_home_is_the_volume() -> None:
    home = of_image("cpu", "VOLUME")
    assert f"HOME={home} " in of_image("cpu", "ENV")
    assert any(f"--home-dir {home} " in run for run in STAGES["common"].all("RUN"))
    assert of_image("cpu", "WORKDIR") == home
    (volume,) = SERVICES["voiceloop"]["volumes"]
    assert volume.partition(":")[2] == home
    assert volume.partition(":")[0] in read("compose.yaml")["volumes"]


def test_the_extras_exist() -> None:
    for stage in ("cpu-packages", "cuda-packages"):
        (extras,) = (arg for arg in STAGES[stage].all("ARG") if arg.startswith("EXTRAS="))
        named = extras.partition("=")[2].split(",")
        assert set(named) <= set(PROJECT["project"]["optional-dependencies"])


def test_the_context_has_what_the_images_are_made_of() -> None:
    """All that a wheel is made of, and no more: no tests, no keys, no caches."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]
    about = [PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]]
    made = {"pyproject.toml", "constraints.txt", "packs", *about, *(one[1:] for one in wheel)}
    assert taken == made
    copied = {
        source
        for stage in STAGES.values()
        for copy in stage.all("COPY")
        if not copy.startswith("--from=")
        for source in copy.split()[:-1]
    }
    for source in copied:
        assert (ROOT / source).exists()
        assert source == "." or source.split("/")[0] in taken


def test_compose_gives_the_key_to_both() -> None:
    """Without the key, compose refuses to begin: `:?`."""
    given = SERVICES["voiceloop"]["environment"]
    assert given[VARIABLE].startswith(f"${{{VARIABLE}:?")
    assert read_keys({VARIABLE: KEY}, COMPOSED.api_key_file) == [KEY]
    assert read("compose.yaml")["secrets"] == {
        secret: {"environment": VARIABLE} for secret in SERVICES["prometheus"]["secrets"]
    }


def test_compose_names_files_that_are_there() -> None:
    build = SERVICES["voiceloop"]["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()
    mounted = [one.split(":")[0] for one in SERVICES["prometheus"]["volumes"] if one[0] == "."]
    assert mounted
    for file in mounted:
        assert (DEPLOY / file).is_file()


def test_prometheus_may_read_the_figures() -> None:
    (job,) = read("prometheus.yml")["scrape_configs"]
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert job["authorization"] == {"credentials_file": f"/run/secrets/{secret}"}
    assert job.get("metrics_path", "/metrics") == METRICS
    ((target,),) = (one["targets"] for one in job["static_configs"])
    assert target.partition(":")[0] in SERVICES
    headers = [("Host", target), ("Authorization", f"Bearer {KEY}")]
    assert isinstance(access_of(COMPOSED, KEYS).judge(METRICS, headers, "172.18.0.3"), Allowed)


def test_the_documented_commands_are_understood() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").replace("\\\n", " ")
    run = re.findall(
        r"^docker .*? (?:voiceloop|voiceloop:cuda) (serve|models.*?|serve .*)$", text, re.M
    )
    assert len(run) >= 3
    for words in run:
        parse({name: kind for name, (kind, _) in COMMANDS.items()}, words.split(), files=[])
    (cell,) = re.findall(r"^\| command \| `voiceloop (.*)` \|$", text, re.M)
    assert cell.split() == json.loads(of_image("cpu", "CMD"))


# ---- several servers


def test_several_servers_share_a_store_and_are_behind_the_proxy() -> None:
    several = read("several.yaml")["services"]
    called = several["haproxy"]["environment"]
    for name, variable in (("voiceloop", "VOICE_FIRST"), ("second", "VOICE_SECOND")):
        command = serve_of(several[name]["command"])
        limits = command.settings.server
        assert limits.store.partition("://")[2].partition(":")[0] in several
        assert access_of(command, KEYS).hosts >= {"localhost:8765", f"{name}:8765"}
        assert called[variable] == f"{name}:{command.port}"
        grace = several[name]["stop_grace_period"]
        assert int(grace.removesuffix("s")) > limits.drain_s + CLOSING_S
    assert several["voiceloop"]["ports"] == []


def test_the_proxy_outlasts_what_the_server_allows() -> None:
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    limits = ServerConfig()

    def seconds(name: str) -> int:
        (number, unit), *rest = re.findall(rf"^ +{name} (\d+)([smh])$", text, re.M)
        assert not rest
        return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]

    assert seconds("hard-stop-after") > limits.session_s
    assert seconds("timeout tunnel") > limits.idle_s
    assert seconds("timeout client") > limits.ping_s
    assert "uri /readyz" in text
    variables = set(re.findall(r"\$\{(\w+)\}", text))
    assert variables == set(read("several.yaml")["services"]["haproxy"]["environment"])


def test_the_unit_gives_its_server_the_time_to_end() -> None:
    text = (DEPLOY / "voiceloop@.service").read_text(encoding="utf-8").replace("%i", "8765")
    (line,) = re.findall(r"^ExecStart=\S*/voiceloop (.*)$", text, re.M)
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.M)
    words = [word for word in line.split() if not word.startswith("/etc")]
    words.remove("--config")
    command = serve_of(words)
    assert (command.port, command.behind_proxy) == (8765, True)
    assert int(stop) > ServerConfig().drain_s + CLOSING_S


@pytest.mark.parametrize("file", ["compose.yaml", "several.yaml"])
def test_every_container_has_limits_and_no_capabilities(file: str) -> None:
    for name, service in read(file)["services"].items():
        whole = SERVICES.get(name, {}) | service
        assert whole["cap_drop"] == ["ALL"] and whole["read_only"] is True
        assert whole["security_opt"] == ["no-new-privileges:true"]
        assert re.fullmatch(r"\d+[mg]|\$\{VOICELOOP_MEMORY:-\d+g\}", whole["mem_limit"])


def test_what_was_said_is_in_a_network_of_the_servers() -> None:
    whole = read("several.yaml")
    joined = {name: one.get("networks", ["default"]) for name, one in whole["services"].items()}
    assert joined["redis"] == ["store"] and whole["networks"]["store"] == {"internal": True}
    assert {name for name, names in joined.items() if "store" in names} == {
        *("voiceloop", "second", "redis"),
    }
