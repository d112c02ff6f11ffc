"""What would happen: traces replayed, metrics taken and starts forecast with the scheduler's own decisions. Pure."""
