"""Composition root: the only place where everything meets."""
