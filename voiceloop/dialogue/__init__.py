"""The dialogue core: pure functions that decide. Nothing here waits, plays audio or runs a
model."""
