"""Speaking: clauses, how they are said, the stage that joins them to an engine, and engines."""
