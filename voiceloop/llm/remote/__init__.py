"""Language models on servers with OpenAI's chat completions API."""
