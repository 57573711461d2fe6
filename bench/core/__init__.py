# What a benchmark and a peer import.
# SPDX-License-Identifier: Apache-2.0
"""The paired measurement core. README.md beside this file says what it does; declare.py and peers.py what is written with it."""
from bench.core.declare import Array, Benchmark, Case, Cosmati, Figure, Measured, Settings, Speed
from bench.core.peers import Absent, Subject, Work, peer

__all__ = ["Absent", "Array", "Benchmark", "Case", "Cosmati", "Figure", "Measured", "Settings", "Speed", "Subject", "Work", "peer"]
