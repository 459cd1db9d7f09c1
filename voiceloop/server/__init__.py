"""The server of `voiceloop serve`: a web page, and the OpenAI Realtime protocol on a websocket."""
