"""The codes with which the server closes websockets (RFC 6455, section 7.4)."""

AWAY = 1001
"""The server is ending."""
POLICY = 1008
"""A limit was reached, the client may not connect, or another connection has its session."""
INTERNAL = 1011
"""The server failed, or the client did not answer a ping."""
TRY_AGAIN = 1013
"""There is no place for the client now."""
