"""Drafts: models and lookups that propose tokens for the target to verify."""
