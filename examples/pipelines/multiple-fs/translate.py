"""Translate a text word by word with the list in a file."""

import sys
from pathlib import Path

words = dict(line.split() for line in Path(sys.argv[1]).read_text().splitlines())
for line in sys.stdin:
    print(" ".join(words.get(word, word) for word in line.split()))
