"""Language models elsewhere: servers of OpenAI's chat completions."""
