"""The executor: one way to run any benchmark or stress job, with evidence, an end on every road, and a record."""
