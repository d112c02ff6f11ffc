"""Write made-up measurements, one a line: day, value."""

import sys
from pathlib import Path

DAYS = ("monday", "tuesday", "wednesday")
Path(sys.argv[1]).write_text("".join(f"{DAYS[at % 3]} {at * at}\n" for at in range(9)))
