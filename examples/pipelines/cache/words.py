"""Print the different words of all files in a directory, in order, one a line."""

import sys
from pathlib import Path

words = {word for file in Path(sys.argv[1]).iterdir() for word in file.read_text().split()}
print("\n".join(sorted(words)))
