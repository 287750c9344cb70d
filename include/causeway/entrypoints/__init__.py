"""The command line and the Airflow glue: the only importers of airflow, and the only ones who print."""
