"""The command line. ``main.py`` holds the root; a command's module is loaded only when that command is used."""
