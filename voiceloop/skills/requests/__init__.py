"""Templates of requests, by language. This package is data alone."""
