"""Values become text, Markdown, HTML, SVG and JSON. No room here asks a cluster anything."""
