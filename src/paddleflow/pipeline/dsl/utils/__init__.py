"""The import path of names and their rules."""
