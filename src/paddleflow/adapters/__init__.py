"""The edges. Each implements a port, none knows another."""
