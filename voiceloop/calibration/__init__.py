"""Calibration: what a language model's P(end of turn) means, measured once for each model."""
