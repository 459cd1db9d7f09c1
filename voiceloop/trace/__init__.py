"""The record of a turn, and its pictures."""
