"""The wire of `voiceloop serve`: OpenAI's Realtime protocol, read and built without I/O.

    text ── client_events.parse ──► ClientEvent ── settings, ledger, responses ──► ServerEvent
                                                                                    │
                                                                         to_json ◄──┘

Structs describe both directions (settings, items, the events); `voiceloop.schema` reads them and
docs/protocol.md lists them. Who listens, speaks and waits is the server's business.
"""
