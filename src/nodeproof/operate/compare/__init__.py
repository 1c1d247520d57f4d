"""Two nodes held against each other, or one node against itself on a day when it was well."""
