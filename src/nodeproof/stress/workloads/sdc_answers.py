"""Answers of the `cpu_sdc` kernels. Made by tools/make_sdc_answers.py from integer arithmetic alone; it tells how."""

from typing import Final

__all__ = ["ANSWERS"]

ANSWERS: Final = {
    "integer": 0x1E8E76A8FA094EA5,
    "float": 0x168E36955AAA614F,
    "vector": 0x0389D499BB87A9AC,
    "matrix": 0x00B67BE55E1FECEA,
    "hash": int(
        "822647D79A61ED3E511AA4EC69F3C48A9C2F86380B1D7F51DDCE51A71FE3B76780B626758FF484786D4D8B24E9BB2E20"
        "A7191F3B71BCF6D9B338C588F003CE93AC7CF9D3A551FFA5B56C1D73A7F1AA6A877A2FAD01BC83A3DBC26DBB9632D668",
        16,
    ),
    "compression": 0x5DA85E715DA85E71,
    "sort": 0x0ADC812DE67C72BC,
}
