"""The wire of `voiceloop serve`: OpenAI's Realtime protocol, read and built without I/O."""
