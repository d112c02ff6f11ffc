"""Import paths that scripts written for earlier clients use. Nothing lives here; see ``paddleflow.sdk``."""
