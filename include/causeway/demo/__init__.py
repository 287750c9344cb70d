"""`make demo` and `make demo-failover`, with an Airflow of the project's own."""
