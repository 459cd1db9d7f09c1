"""What the operator of a server sees: logs, metrics, and traces by OpenTelemetry."""
