"""The dialogue: a pure core that decides, and nothing that waits, sounds or computes."""
