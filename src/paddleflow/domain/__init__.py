"""The nouns and their rules. Pure: the standard library only, and of it nothing that touches the world."""
