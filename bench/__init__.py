"""The bench: one command prints every figure, each beside a peer measured in the same run on the same machine.

``python -m bench`` runs it from the root of the repository; ``--short`` uses small numbers and says so. Nothing here
is imported by the package, and nothing here reaches into the server: it is measured from outside, as users meet it.
The one exception is ``bench.fill``, which writes finished jobs straight through the store, because submitting and
running 100,000 of them would measure something else.
"""
