"""One file for each group of commands. They parse, call the client, and print; rules live on the server."""
