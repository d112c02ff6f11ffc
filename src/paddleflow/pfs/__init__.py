"""PaddleFlowFS: object storage as a POSIX filesystem, at the speed of the local disk, that survives its own daemon.

Four layers, each knowing only the one below: ``fuse`` speaks the kernel's protocol, ``vfs`` is every file operation
and knows nothing of FUSE, beside it stand metadata, reading ahead and staging of writes, and ``cache`` keeps bytes of
object versions in files. Three processes: the holder (mounts, never dies), the front (one loop), the workers (store).
"""
