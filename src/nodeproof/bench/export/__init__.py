"""Stored runs in the forms of other programs, and as a page that needs nothing else. Pure: sheets in, text out."""
