"""The Airflow side: the only importers of airflow. Everything that costs time loads when a task runs."""
