"""A causal language model on a device: its weights, its passes, its cache and its kernels."""
