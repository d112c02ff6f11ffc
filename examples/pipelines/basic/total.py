"""Print the sum of the numbers in a file."""

import sys
from pathlib import Path

print(sum(map(int, Path(sys.argv[1]).read_text().split())))
