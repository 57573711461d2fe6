# The peers that come with the tree, one a file. A file here imports nothing that may be missing before it is asked to take part.
# SPDX-License-Identifier: Apache-2.0
"""Peers by name: bench.core.load_peers() reads every file of this folder."""
