"""The messages of `voiceloop serve`: OpenAI's Realtime protocol, parsed and built without I/O.

    text ── client_events.parse ──► ClientEvent ── settings, ledger, responses ──► ServerEvent
                                                                                    │
                                                                         to_json ◄──┘

The messages of both directions are structs: settings, items and events.
`voiceloop.settings.schema` checks values against them, and docs/protocol.md lists them.
`voiceloop.server` does the I/O.
"""
