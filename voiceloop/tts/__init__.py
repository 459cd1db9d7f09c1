"""Speech synthesis: cutting a reply into clauses, their text as it is spoken, and synthesizers."""
