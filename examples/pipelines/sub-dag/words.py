"""Small things to do with words: split a text, choose the long ones, count them, add counts up."""

import sys
from collections import Counter
from pathlib import Path

what, path, *more = sys.argv[1:]
if what == "split":
    print("\n".join(Path(path).read_text().split()))
elif what == "choose":
    print("\n".join(word for word in Path(path).read_text().split() if len(word) >= int(more[0])))
elif what == "count":
    for word, count in sorted(Counter(Path(path).read_text().split()).items()):
        print(word, count)
elif what == "total":
    counts: Counter[str] = Counter()
    for part in path.split(","):
        for line in Path(part).read_text().splitlines():
            word, number = line.split()
            counts[word] += int(number)
    for word, count in sorted(counts.items()):
        print(word, count)
