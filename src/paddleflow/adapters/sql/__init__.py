"""The store on a real database: SQLite (embedded) and PostgreSQL (many servers), one implementation.

SQLAlchemy is used for what it is best at: declaring tables, building statements, compiling them for each engine and
pooling PostgreSQL's connections. Compiled text then goes straight to the driver, because a job is read and written
often and the generic execution path costs more than the database does.
"""
