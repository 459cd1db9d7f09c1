"""What is checked and measured on a GPU: see docs/benchmarks.md."""
