"""Twins of the outside world in dictionaries: for stories told on a virtual clock, and for an ephemeral platform."""
