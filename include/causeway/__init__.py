"""Causeway mirrors Apache Kafka clusters: exact, provable, native to Airflow and Spark."""
