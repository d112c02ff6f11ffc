"""The wire: the shapes of the REST API under ``/api/paddleflow/v1``, and how they become nouns of the domain.

Requests are pydantic models with ``to_command()``. Answers are typed dictionaries made by plain functions: what is sent
is built from our own rows, so validating it again would only cost time.
"""
