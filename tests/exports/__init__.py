"""Exported pipelines in the engines they are exported to."""
