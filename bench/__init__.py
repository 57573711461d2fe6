# Paired measurements: `./dev bench` lists the benchmarks, which are the Python files and packages of this folder besides core and peers.
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of Cosmati. bench/core/README.md says how they measure and what they write."""
