"""Small readers of single sources, cheap enough for a few looks a second; each gives a value or raises NoData."""
