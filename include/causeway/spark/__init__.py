"""Carries lanes to Spark's executors and rows back to the driver."""
