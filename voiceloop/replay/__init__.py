"""Conversations replayed from files, with scripted engines on a virtual clock."""
