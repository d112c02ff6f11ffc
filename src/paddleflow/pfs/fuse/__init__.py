"""The kernel's FUSE protocol on /dev/fuse; the only package that knows it.

Our own, because no binding offers passthrough or resend, and all cost several times more per call. ``device`` mounts,
``negotiation`` agrees with the kernel, ``protocol`` has the words. In the front, ``loop`` waits, ``session`` reads
requests and writes answers, ``dispatch`` turns each into a call of the vfs (``operations``), ``passthrough`` keeps the
backing files, ``notify`` tells the kernel what to forget. ``holding`` is the line to the holder.

Import the modules, not this package: the holder must be able to load the first three alone, because it is to be small.
"""
