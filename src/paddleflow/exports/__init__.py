"""Pipelines for other engines: an Argo Workflow manifest, an Airflow DAG file."""
