"""Speculative decoding: rounds of a draft and a target over one sequence of token ids."""
