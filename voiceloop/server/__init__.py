"""The server of `voiceloop serve`: a web page, and the OpenAI Realtime protocol on a websocket.

From the door inwards:

- `port`, `tls`, `websocket`: where it listens, and what carries messages;
- `routes`, `http`: what a request gets: a page, a figure, a refusal, or a socket;
- `auth`, `keys`, `limits`: who may come in, and how much one client may take;
- `connection`, `outbox`: one client: a task that reads and one that writes;
- `lobby`, `resume`: the sessions there are, and how a client comes back to its own;
- `dialogue`: what a client keeps from one connection to the next;
- `visit`, with `inputbuffer`, `listening`, `asking`, `unanswered`, `speaking`, `history` and
  `choices`: the adapter between events on the wire and a session, as long as a connection lasts;
- `audio`: a client as microphone and speaker;
- `app`, `command`: all of it together;
- `metrics`, `logs`: what is counted and written down.
"""
