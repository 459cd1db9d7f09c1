"""Measurements: modes side by side in one process, and what a reader wants to see of them."""
