"""Who runs next, where, and why not. Pure: a snapshot goes in, decisions with reasons come out."""
