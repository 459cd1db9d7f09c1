"""Calibration: what a language model's P(end of turn) means, found out for each model once."""
