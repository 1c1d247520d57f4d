"""The wire contracts: frozen structs, without I/O and without a clock."""
