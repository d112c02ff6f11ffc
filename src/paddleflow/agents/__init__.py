"""Small programs of the platform that run inside tasks, beside or around the user's own.

Standard library only, apart from the pure contract of ``frameworks``: they run in whatever environment a job brings.
"""
