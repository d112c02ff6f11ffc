"""One module for each kind of thing the API serves; each declares its endpoints in ``routes``."""
