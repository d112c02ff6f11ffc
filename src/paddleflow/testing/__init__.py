"""The test kit, ours and our users': builders of domain objects and a whole platform in memory."""
