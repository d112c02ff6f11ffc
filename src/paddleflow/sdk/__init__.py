"""The Python client: one file for each resource, one transport, one error tree.

``paddleflow.Client`` is put together in ``client.py``. Nothing is imported here, so that importing one part does
not pay for the others.
"""
