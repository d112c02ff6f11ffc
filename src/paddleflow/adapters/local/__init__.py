"""The local runtime: tasks are real processes of this host.

Two sides share this folder. The *server side* (``runtime`` and what it uses) lives in the platform's process. The
*host side* (``nursery``, ``supervisor``, ``task_process`` and what they use) lives in small processes that outlive
the platform; those modules import a handful of standard modules and nothing else of this package's domain, because
their start-up time and memory are paid by every task. Both sides meet only in files (``layout``) and two datagram
sockets that carry nothing but "look at this task".
"""
