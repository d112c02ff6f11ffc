"""What distributed and elastic jobs remember, and the weight of a queue.

Both are null in the rows that exist already, and mean what those rows meant.

Revision: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("course", _TEXT, nullable=True))
    op.add_column("queues", sa.Column("weight", sa.BigInteger(), nullable=True))
