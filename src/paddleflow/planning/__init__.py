"""The pipeline language, pure: read what was written, check it, compile it to a plan, advance a run of that plan.

::

    plain values ──parse──► Source ──check, compile──► Plan ──advance(plan, progress, events)──► what to store and to do

Reads no file, knows no database, starts nothing: what must be looked up outside is asked for (``moves.Fetch``,
``moves.Prepare``) and answered by an event.
"""
