"""A game of dice: throw them, take the mean, name the winner."""

import random
import sys
from pathlib import Path

what, first, *more = sys.argv[1:]
if what == "throw":
    dice = random.Random(int(first))
    print(" ".join(str(dice.randint(1, 6)) for _ in range(int(more[0]))))
elif what == "mean":
    numbers = [int(text) for text in Path(first).read_text().split()]
    print(sum(numbers) / len(numbers))
elif what == "winner":
    ann, bob = (float(Path(path).read_text()) for path in (first, more[0]))
    print("nobody" if ann == bob else "ann" if ann > bob else "bob")
