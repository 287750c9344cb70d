"""Causeway mirrors Apache Kafka clusters: exact, provable, native to Airflow and Spark."""

__version__ = "0.1.0"
