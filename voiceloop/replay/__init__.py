"""Recorded conversations that are replayed, and how the result differs."""
