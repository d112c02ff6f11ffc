"""Reactors: each follows the feed, looks at rows, asks a pure function what to do, and then does it."""
