"""Print the lines of all files. Each argument is the artifact of a loop: the paths of all items, joined by commas."""

import sys
from pathlib import Path

for paths in sys.argv[1:]:
    for path in paths.split(","):
        print(Path(path).read_text(), end="")
