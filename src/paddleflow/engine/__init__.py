"""The shell around the pure packages: one way in (intake), one way out (feed), reactors between."""
