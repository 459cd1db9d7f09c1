"""Files of models in the format GGUF, by the C library of llama.cpp."""
