"""The mount as programs see it: real kernel, real processes, real stores."""
