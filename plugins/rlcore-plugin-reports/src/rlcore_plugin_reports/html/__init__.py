"""The HTML page about runs: what it shows, and the templates, style and script that it is made of."""
