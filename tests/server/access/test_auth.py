"""Who may connect: tables of requests, honest and hostile, each with its verdict and the reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.server.access.auth import (
    KEY_PROTOCOL,
    PROTOCOL,
    Access,
    Allowed,
    RefusalReason,
)
from voiceloop.server.access.keys import Keyring
from voiceloop.server.port import Binding, check_binding

pytestmark = pytest.mark.pure

KEY = "correct-horse-battery-staple"
SECOND = "incorrect-horse-battery-staple"
KEYS = Keyring([KEY, SECOND])
ID = Keyring([KEY]).match(KEY)
URL = "/v1/realtime"
HOST = ("Host", "localhost:8765")
BEARER = ("Authorization", f"Bearer {KEY}")
OWN = ("Origin", "http://localhost:8765")
HERE, THERE = "127.0.0.1", "192.0.2.7"
"""Addresses of this machine and of another one."""

LOCAL = Access(Binding())
KEYED = Access(Binding(), KEYS)
PUBLIC = Access(
    Binding("0.0.0.0", 8443, tls=True),
    KEYS,
    hosts=["Voice.example.com"],
    origins=["https://app.example.com", "tauri://localhost"],
)
PROXIED = Access(Binding(behind_proxy=True), KEYS, hosts=["voice.example.com"])


def offering(*protocols: str) -> tuple[str, str]:
    return "Sec-WebSocket-Protocol", ", ".join(protocols)


def verdict(
    access: Access, *headers: tuple[str, str], target: str = URL, peer: str = HERE
) -> Allowed | RefusalReason:
    return access.judge(target, headers, peer)


def allowed(
    access: Access, *headers: tuple[str, str], target: str = URL, peer: str = HERE
) -> Allowed:
    judged = verdict(access, *headers, target=target, peer=peer)
    assert isinstance(judged, Allowed), judged
    return judged


def refused(
    access: Access, *headers: tuple[str, str], target: str = URL, peer: str = HERE
) -> RefusalReason:
    judged = verdict(access, *headers, target=target, peer=peer)
    assert isinstance(judged, RefusalReason), judged
    return judged


# --- where the server may listen ----------------------------------------------------------------


ELSEWHERE = ["0.0.0.0", "::", "", "192.0.2.7", "2001:db8::7", "voice.example.com"]


@pytest.mark.parametrize("host", [*ELSEWHERE, "127.0.0.1.example.com", "localhost.example.com"])
def test_elsewhere_a_key_and_tls_and_a_name_are_required(host: str) -> None:
    def complaint(**given: bool) -> str:
        binding = Binding(host, tls=given.get("tls", False), behind_proxy=given.get("proxy", False))
        with pytest.raises(ConfigError) as caught:
            check_binding(binding, keys=given.get("keys", False), names=given.get("names", False))
        assert caught.value.hint
        return caught.value.message

    assert "no API key is set" in complaint()
    assert "no API key is set" in complaint(tls=True, names=True)
    assert "in the clear" in complaint(keys=True, names=True)
    if host in ("0.0.0.0", "::", ""):
        assert "does not know its own name" in complaint(keys=True, tls=True)
        assert "does not know its own name" in complaint(keys=True, proxy=True)
    assert "in the clear" in complaint(), "all at once"
    check_binding(Binding(host, tls=True), keys=True, names=True)
    check_binding(Binding(host, behind_proxy=True), keys=True, names=True)


@pytest.mark.parametrize(
    "origin",
    [
        "*", "null", "", "voice.example.com", "https://", "https://voice.example.com/page",
        "https://*.example.com", "https://user@voice.example.com", "https://voice.example.com:0",
        "https://voice.example.com:99999", "https://b\u00fccher.example", "https://a b",
        "https://[::g]", "https://[1.2.3.4]", "https://\u212aube.example", "https://a\n", "://a",
    ],
)  # fmt: skip
def test_an_origin_that_no_browser_would_send_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(ConfigError, match="is not an origin") as caught:
        Access(Binding(), origins=[origin])
    assert caught.value.hint == "write https://voice.example.com, without a path"


@pytest.mark.parametrize(
    "host", ["*", "", ".", "http://a", "a/b", "a b", "a:0", "a:x", "a:99999", "::1", "[::1", "a\n"]
)
def test_a_host_that_is_none_is_refused_at_the_start(host: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a host"):
        Access(Binding(), hosts=[host])


# --- Host ---------------------------------------------------------------------------------------


HOSTILE_HOSTS = [
    "", " ", "evil.example", "evil.example:8765", "localhost", "localhost:80", "localhost:8001",
    "localhost:", "localhost:8765:8765", "localhost:-8765", "localhost:+8765", "localhost:8765 ",
    "localhost..:8765", "localhost.evil.example:8765", "evil.localhost:8765", "localhost%00:8765",
    "localhost\0:8765", "localhost:8765\0", "localhost:8765/", "localhost:8765,evil.example",
    "user@localhost:8765", "evil.example#localhost:8765", "evil.example/localhost:8765",
    "127.1:8765", "2130706433:8765", "0x7f000001:8765", "0177.0.0.1:8765", "127.0.0.1.:80",
    "0.0.0.0:8765", "[::]:8765", "[::1%25lo]:8765", "[::1%lo]:8765", "::1:8765", "[::1:8765",
    "[::ffff:127.0.0.1]:8765", "[localhost]:8765", "localhost:\u0668765", "local\u212aost:8765",
    "loc\u0430lhost:8765", "localhost:876500", "localhost:65536", "localhost\r\nHost: evil:8765",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTILE_HOSTS)
@pytest.mark.parametrize("access", [LOCAL, KEYED])
def test_the_server_answers_to_no_other_name(access: Access, host: str) -> None:
    assert access.host([("Host", host)], HERE) == RefusalReason.HOST
    assert refused(access, ("Host", host), BEARER) is RefusalReason.HOST


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization"])
def test_a_header_that_decides_is_there_once(name: str) -> None:
    headers = [HOST, OWN, BEARER]
    twice = next(header for header in headers if header[0] == name)
    for access in (LOCAL, KEYED):
        doubled = [*headers, (name.upper(), twice[1])]
        assert refused(access, *doubled) is RefusalReason.DUPLICATE_HEADER
        assert access.host(doubled, HERE) == RefusalReason.DUPLICATE_HEADER


# --- Origin -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "origin"),
    [
        (LOCAL, "http://localhost:8765"),
        (LOCAL, "http://127.0.0.1:8765"),
        (LOCAL, "http://[::1]:8765"),
        (KEYED, "http://localhost:8765"),
        (Access(Binding(port=80)), "http://localhost"),
        (Access(Binding(port=443, tls=True)), "https://localhost"),
        (Access(Binding(), origins=["HTTP://127.0.0.1:5173/"]), "http://127.0.0.1:5173"),
        (Access(Binding(), origins=["https://a.example:443"]), "https://a.example"),
        (Access(Binding(), origins=["chrome-extension://abcdef"]), "chrome-extension://abcdef"),
        (PUBLIC, "https://voice.example.com:8443"),
        (PUBLIC, "https://app.example.com"),
        (PUBLIC, "tauri://localhost"),
        (PROXIED, "https://voice.example.com"),
    ],
)
def test_pages_of_the_server_and_those_that_were_named_may_connect(
    access: Access, origin: str
) -> None:
    host = ("Host", sorted(access.hosts)[0])
    assert allowed(access, host, ("Origin", origin), BEARER)


HOSTILE_ORIGINS = [
    "null", "NULL", "", "*", "https://evil.example", "https://localhost:8765",
    "http://localhost", "http://localhost:80", "http://localhost:8001", "http://localhost:8765/",
    "http://localhost:8765.evil.example", "http://localhost:8765@evil.example",
    "http://evil.example#http://localhost:8765", "http://sub.localhost:8765",
    "http://localhost.:8765", "HTTP://LOCALHOST:8765", "http://LOCALHOST:8765",
    "http://localhost:08765", "http://127.1:8765", "file://", "http://localhost:8765 ",
    "http://localhost:8765, http://evil.example", "http://evil.example http://localhost:8765",
    "data:", "http://localhost:8765\0", "http://l\u043ecalhost:8765", "http://[0::1]:8765",
]  # fmt: skip


@pytest.mark.parametrize("origin", HOSTILE_ORIGINS)
@pytest.mark.parametrize("access", [LOCAL, KEYED])
def test_no_other_page_may_connect_even_with_a_key(access: Access, origin: str) -> None:
    assert refused(access, HOST, ("Origin", origin), BEARER) is RefusalReason.ORIGIN


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("target", [URL, "/metrics", "/v1/voices/en"])
def test_images_and_scripts_of_other_pages_get_nothing(site: str, target: str) -> None:
    """Browsers send no Origin for them."""
    other = ("Sec-Fetch-Site", site)
    for access in (LOCAL, KEYED):
        assert refused(access, HOST, BEARER, other, target=target) is RefusalReason.ORIGIN
        assert allowed(access, HOST, BEARER, OWN, other, target=target)


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_servers_own_page_and_its_address_typed_in_a_browser_are_answered(site: str) -> None:
    assert allowed(LOCAL, HOST, ("Sec-Fetch-Site", site), target="/v1/voices/en")


# --- the peer -----------------------------------------------------------------------------------

LOOPBACK = ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"]


@pytest.mark.parametrize(
    "peer", [THERE, "10.0.0.5", "172.17.0.1", "fe80::1", "::ffff:192.0.2.7", "localhost", ""]
)
def test_without_keys_nobody_else_may_connect_whatever_they_call_the_server(peer: str) -> None:
    for host in sorted(LOCAL.hosts):
        assert refused(LOCAL, ("Host", host), peer=peer) is RefusalReason.PEER
        assert LOCAL.host([("Host", host)], peer) == RefusalReason.PEER
    assert allowed(KEYED, HOST, BEARER, peer=peer)


# --- proxies ------------------------------------------------------------------------------------

FORWARDED = ["Forwarded", "Via", "X-Forwarded-For", "X-FORWARDED-PROTO", "x-real-ip"]


OTHERS = [
    *("X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded", "Forwarded-For"),
    *("X_Forwarded_For", "X-Original-Forwarded-For", "CF-Connecting-IP", "True-Client-IP"),
    *("X-Client-IP", "X-Cluster-Client-IP", "X-Envoy-External-Address", "Tailscale-User-Login"),
    *("X-Original-Host", "CDN-Loop", "Fastly-Client-IP", "X-ARR-ClientIP"),
]


@pytest.mark.parametrize("name", [*FORWARDED, *OTHERS])
def test_what_a_proxy_forwards_is_not_this_machine(name: str) -> None:
    assert refused(LOCAL, HOST, (name, "127.0.0.1")) is RefusalReason.PROXY
    assert refused(LOCAL, HOST, (name, "127.0.0.1"), peer=THERE) is RefusalReason.PROXY
    assert LOCAL.host([HOST, (name, "")], HERE) == RefusalReason.PROXY
    assert allowed(PROXIED, HOST, BEARER, (name, "192.0.2.7"))
    assert allowed(KEYED, HOST, BEARER, (name, "192.0.2.7"))


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        [BEARER],
        [("AUTHORIZATION", f"bearer   {KEY}")],
        [offering(PROTOCOL, KEY_PROTOCOL + KEY)],
        [offering(KEY_PROTOCOL + KEY, PROTOCOL)],
        [offering(PROTOCOL), offering(KEY_PROTOCOL + KEY)],
        [offering("realtime", KEY_PROTOCOL + KEY, "openai-organization.x", "openai-beta.v1")],
        [("Sec-WebSocket-Protocol", f"realtime,\t{KEY_PROTOCOL}{KEY} ")],
        [("Authorization", "Basic dXNlcjpwYXNz"), offering(PROTOCOL, KEY_PROTOCOL + KEY)],
    ],
)
def test_a_key_comes_in_either_of_two_places(headers: list[tuple[str, str]]) -> None:
    assert allowed(KEYED, HOST, *headers) == Allowed(ID)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], RefusalReason.NO_KEY),
        ([offering(PROTOCOL)], RefusalReason.NO_KEY),
        ([("Authorization", "")], RefusalReason.NO_KEY),
        ([("Authorization", KEY)], RefusalReason.NO_KEY),
        ([("Authorization", "Bearer")], RefusalReason.NO_KEY),
        ([("Authorization", "Bearer ")], RefusalReason.NO_KEY),
        ([("Authorization", f"Bearer {KEY} {KEY}")], RefusalReason.NO_KEY),
        ([("Authorization", f"Bearer {KEY}\n")], RefusalReason.NO_KEY),
        ([("Authorization", f"Token {KEY}")], RefusalReason.NO_KEY),
        ([("Authorization", "Basic dXNlcjpwYXNz")], RefusalReason.NO_KEY),
        ([("Authorization", f"\u212aearer {KEY}")], RefusalReason.NO_KEY),
        ([("X-Api-Key", KEY)], RefusalReason.NO_KEY),
        ([("Cookie", f"key={KEY}")], RefusalReason.NO_KEY),
        ([("Authorization", f"Bearer {KEY}x")], RefusalReason.WRONG_KEY),
        ([("Authorization", f"Bearer {KEY[:-1]}")], RefusalReason.WRONG_KEY),
        ([("Authorization", f"Bearer {KEY.upper()}")], RefusalReason.WRONG_KEY),
        ([("Authorization", f"Bearer {ID}")], RefusalReason.WRONG_KEY),
        ([("Authorization", f"Bearer {'x' * 8765}")], RefusalReason.WRONG_KEY),
        ([offering(PROTOCOL, KEY_PROTOCOL)], RefusalReason.WRONG_KEY),
        ([offering(PROTOCOL, KEY_PROTOCOL + "x")], RefusalReason.WRONG_KEY),
        ([offering(PROTOCOL, KEY)], RefusalReason.NO_KEY),
        ([offering(PROTOCOL, KEY_PROTOCOL.upper() + KEY)], RefusalReason.NO_KEY),
        ([BEARER, offering(PROTOCOL, KEY_PROTOCOL + KEY)], RefusalReason.TWO_KEYS),
        ([BEARER, offering(PROTOCOL, KEY_PROTOCOL + SECOND)], RefusalReason.TWO_KEYS),
        ([offering(PROTOCOL, KEY_PROTOCOL + "x", KEY_PROTOCOL + KEY)], RefusalReason.TWO_KEYS),
        ([BEARER, ("authorization", "Bearer x")], RefusalReason.DUPLICATE_HEADER),
        ([offering(KEY_PROTOCOL + KEY)], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering("graphql-ws")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering("REALTIME")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering("")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering(PROTOCOL, "")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering(PROTOCOL, "a b")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering(PROTOCOL, "a=b")], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering(PROTOCOL, '"realtime"')], RefusalReason.SUBPROTOCOL),
        ([BEARER, offering(PROTOCOL, "\u00e9")], RefusalReason.SUBPROTOCOL),
    ],
)
def test_a_key_that_is_missing_wrong_or_in_doubt_opens_nothing(
    headers: list[tuple[str, str]], reason: RefusalReason
) -> None:
    assert refused(KEYED, HOST, *headers) is reason
    assert refused(KEYED, HOST, OWN, *headers) is reason


# --- the URL ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        f"api_key={KEY}", f"api-key={KEY}", f"apikey={KEY}", f"key={KEY}", f"token={KEY}",
        f"access_token={KEY}", f"Authorization=Bearer+{KEY}", f"model=x&api_key={KEY}",
        f"API_KEY={KEY}", f"%61pi_key={KEY}", "api_key=anything", "api_key", "token=",
        f"model={KEY}", f"x={KEY}", f"model=a&model={SECOND}", "client_secret=x", "password=x",
    ],
)  # fmt: skip
def test_a_key_in_the_url_is_refused_even_beside_a_good_one(query: str) -> None:
    assert refused(KEYED, HOST, BEARER, target=f"{URL}?{query}") is RefusalReason.KEY_IN_URL


@pytest.mark.parametrize(
    "query",
    [
        "intent=conversation",
        "intent=",
        "Intent=transcription",
        "call_id=1",
        "Model=x",
        "model=x&voice=alloy",
        KEY,
        "=x",
    ],
)
def test_no_other_parameter_is_ignored_in_silence(query: str) -> None:
    assert refused(LOCAL, HOST, target=f"{URL}?{query}") is RefusalReason.QUERY


# --- all of it ----------------------------------------------------------------------------------


def test_every_refusal_has_a_status_and_a_hint_of_one_line() -> None:
    for reason in RefusalReason:
        assert 400 <= reason.status < 500
        assert reason.hint
        assert "\n" not in reason.hint
    assert {reason for reason in RefusalReason if reason.status == 401} == {
        RefusalReason.NO_KEY,
        RefusalReason.WRONG_KEY,
    }


hosts = st.sampled_from([HOST[1], "voice.example.com:8443", "127.0.0.1:8765", *HOSTILE_HOSTS[:12]])
origins = st.sampled_from([OWN[1], "https://app.example.com", *HOSTILE_ORIGINS[:6]])
bearers = st.sampled_from([BEARER[1], f"Bearer {SECOND}", "Bearer x", "Basic x"])
protocols = st.lists(
    st.sampled_from([PROTOCOL, KEY_PROTOCOL + KEY, KEY_PROTOCOL + "x", "other", "", "a b"])
).map(", ".join)
likely = st.one_of(
    st.tuples(st.sampled_from(["Host", "HOST"]), hosts),
    st.tuples(st.just("Origin"), origins),
    st.tuples(st.sampled_from(["Authorization", "authorization"]), bearers),
    st.tuples(st.just("Sec-WebSocket-Protocol"), protocols),
    st.tuples(st.sampled_from(FORWARDED), st.just("192.0.2.7")),
    st.tuples(st.just("Sec-Fetch-Site"), st.sampled_from(["same-origin", "cross-site"])),
    st.tuples(st.text(max_size=5), st.text(max_size=5)),
)
requests = st.builds(
    lambda first, rest: [*first, *rest],
    st.sampled_from(
        [[], [HOST], [HOST, BEARER], [HOST, OWN], [("Host", "voice.example.com:8443")]]
    ),
    st.lists(likely, max_size=5),
)
targets = st.sampled_from([URL, f"{URL}?model=x", f"{URL}?api_key=x", f"{URL}?voice=x"])


def values(headers: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [value for given, value in headers if given.lower() == name]


peers = st.sampled_from([*LOOPBACK, THERE, ""])


@given(st.sampled_from([LOCAL, KEYED, PUBLIC, PROXIED]), targets, requests, peers)
def test_whoever_is_allowed_has_kept_every_rule(
    access: Access, target: str, headers: list[tuple[str, str]], peer: str
) -> None:
    judged = access.judge(target, headers, peer)
    if isinstance(judged, RefusalReason):
        return
    [host] = values(headers, "host")
    assert host.lower() in access.hosts
    assert set(values(headers, "origin")) <= access.origins
    assert values(headers, "origin") or values(headers, "sec-fetch-site")[:1] != ["cross-site"]
    assert target in (URL, f"{URL}?model=x")
    offered = [token.strip() for each in values(headers, "sec-websocket-protocol")
               for token in each.split(",")]  # fmt: skip
    assert not offered or PROTOCOL in offered
    if access is LOCAL:
        assert judged.key is None
        assert peer in LOOPBACK
        assert not {name.lower() for name, _ in headers} & {name.lower() for name in FORWARDED}
        return
    sent = [value.removeprefix("Bearer ") for value in values(headers, "authorization")
            if value.startswith("Bearer ")]  # fmt: skip
    sent += [
        token.removeprefix(KEY_PROTOCOL) for token in offered if token.startswith(KEY_PROTOCOL)
    ]
    assert [judged.key] == [KEYS.match(key) for key in sent]
    assert judged.key is not None


@given(st.text(), st.lists(st.tuples(st.text(), st.text())))
def test_no_request_is_too_strange_to_be_judged(
    target: str, headers: list[tuple[str, str]]
) -> None:
    for access in (LOCAL, KEYED):
        assert isinstance(access.judge(target, [HOST, *headers], HERE), Allowed | RefusalReason)
        access.judge(f"{URL}?{target}", [HOST, *headers], target)
        access.host(headers, HERE)


# --- the server's own page, on this machine -------------------------------------------------------

TLS = Access(Binding(tls=True))
EVERYWHERE = Access(Binding("0.0.0.0", 8443, tls=True), KEYS, hosts=["voice.example.com"])


@pytest.mark.parametrize("peer", LOOPBACK)
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_the_page_of_this_machine_is_known(name: str, peer: str) -> None:
    for access, scheme, port in (
        (LOCAL, "http", 8765),
        (KEYED, "http", 8765),
        (TLS, "https", 8765),
        (EVERYWHERE, "https", 8443),
    ):
        headers = [("Host", f"{name}:{port}"), ("Origin", f"{scheme}://{name}:{port}")]
        assert access.beside(headers, peer)


@pytest.mark.parametrize(
    ("access", "headers", "peer"),
    [
        (LOCAL, [HOST, OWN], "192.0.2.7"),
        (LOCAL, [HOST, OWN], ""),
        (LOCAL, [HOST, OWN], "localhost"),
        (LOCAL, [HOST], "127.0.0.1"),
        (LOCAL, [HOST, ("Origin", "null")], "127.0.0.1"),
        (LOCAL, [HOST, ("Origin", "http://localhost:5173")], "127.0.0.1"),
        (LOCAL, [HOST, ("Origin", "https://localhost:8765")], "127.0.0.1"),
        (LOCAL, [HOST, ("Origin", "http://127.0.0.1:8765")], "127.0.0.1"),
        (LOCAL, [HOST, OWN, OWN], "127.0.0.1"),
        (LOCAL, [HOST, HOST, OWN], "127.0.0.1"),
        (LOCAL, [OWN], "127.0.0.1"),
        (LOCAL, [("Host", "evil.example:8765"), ("Origin", "http://evil.example:8765")], "::1"),
        (KEYED, [HOST, OWN, ("X-Forwarded-For", "192.0.2.7")], "127.0.0.1"),
        (KEYED, [HOST, OWN, ("Via", "1.1 a")], "127.0.0.1"),
        (PROXIED, [HOST, OWN], "127.0.0.1"),
        (
            EVERYWHERE,
            [("Host", "voice.example.com:8443"), ("Origin", "https://voice.example.com:8443")],
            "127.0.0.1",
        ),
    ],
)
def test_nobody_else_is_taken_for_it(
    access: Access, headers: Sequence[tuple[str, str]], peer: str
) -> None:
    assert not access.beside(headers, peer)


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from([*LOOPBACK, "192.0.2.7"]))
def test_whatever_is_said_it_is_a_loopback_name_of_one_origin(
    host: str, origin: str, peer: str
) -> None:
    for access in (LOCAL, KEYED, PUBLIC, PROXIED, EVERYWHERE):
        assert not access.beside([("Host", host), ("Origin", origin)], peer)
