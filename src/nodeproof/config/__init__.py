"""The one YAML file: what may stand in it, and how it is found, read and judged."""
