"""Words of the wire that the client has to know itself.

They are the platform's own; its modules are not imported for them, because everybody who imports the client would pay
for classes that only a server uses. A test holds them equal.
"""

from __future__ import annotations

SUCCEEDED = "succeeded"
JOB_ENDED = frozenset({SUCCEEDED, "failed", "terminated", "preempted", "cancelled", "skipped"})
RUN_ENDED = frozenset({SUCCEEDED, "failed", "terminated", "skipped"})
PARENT_LABEL = "paddleflow.baidu.com/elastic-resource-quota-parent"
