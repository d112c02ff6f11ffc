"""Written documents: YAML text to plain values that remember their lines, and back. The YAML library's one door."""

from paddleflow.documents.reading import Document, load
from paddleflow.documents.writing import dump

__all__ = ["Document", "dump", "load"]
