"""The HTTP face of the platform: routes, and what every route shares. It knows the engine alone."""
