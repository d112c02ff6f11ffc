"""The storage bench: our mount beside the native filesystem and beside ``rclone mount``, in turn, in one run.

``python -m bench.storage`` starts an S3 server on loopback, mounts one bucket by ourselves and by rclone, and runs
every workload on each side in rounds, in random order. A ratio is the median of the ratios of the rounds, so that a
machine that is busy for a while is busy for all. Every page that a workload reads is checked while it is timed, and
everything is compared byte by byte afterwards: a fast wrong answer is an error. A missed target is not.
"""
