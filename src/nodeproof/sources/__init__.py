"""Pure parsers: bytes in, structs out. No I/O and no clock; one file a source."""
