"""Print a table of the days: how many values, and the largest."""

import sys
from pathlib import Path

raw, days = map(Path, sys.argv[1:])
print(f"{len(raw.read_text().splitlines())} values")
for day in sorted(days.iterdir()):
    values = [int(text) for text in day.read_text().split()]
    print(f"{day.name}: {len(values)} values, at most {max(values)}")
