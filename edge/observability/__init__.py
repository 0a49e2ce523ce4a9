"""The audit log and the metrics."""
