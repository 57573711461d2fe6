# Peers: what Cosmati is compared with, one Python function each.
# SPDX-License-Identifier: Apache-2.0
"""A peer is a function with the decorator @peer, in bench/peers/ or in the file of a benchmark.

    @peer("numpy", requires=["numpy>=2"])
    def numpy_(work):
        if work.operation != "softmax":
            raise Absent(f"numpy has no {work.operation} here")

        def run(i):                                  # computes set i, as it will be timed
            x, y = work.inputs[i]["x"], work.outputs[i]["y"]
            e = np.exp(x - x.max(-1, keepdims=True))
            np.divide(e, e.sum(-1, keepdims=True), out=y)

        return run

The function makes ready what is not timed and returns what is. What it writes is judged as our own results are, by the float64
oracle and its bounds, before its time counts.
"""
import dataclasses
import importlib
import pkgutil
from typing import Any, Callable, Dict, List, Mapping, Optional

PEERS: Dict[str, "Peer"] = {}


class Absent(Exception):
    """Raised by a peer that cannot take part, with the reason: a library or a device that is missing, an operation it does not have."""


@dataclasses.dataclass
class Work:
    """What a peer computes. inputs and outputs: one dict of NumPy arrays a set, by the names of the program's parameters; inputs are
    not to be written. A yardstick gets its kind as the operation and arrays called `bytes`: as many bytes in and out as the program
    moves together (copy), or as many in, and eight out for the exclusive or of all words (read)."""

    operation: str
    inputs: List[Mapping[str, Any]]
    outputs: List[Mapping[str, Any]]
    scalars: Mapping[str, float]
    threads: int  # how many may be used


@dataclasses.dataclass
class Subject:
    """What is timed. run(i) computes set i and may return before it is done; wait() returns when everything is. fetch(i) gives the
    outputs of set i as a dict of NumPy arrays, where they are not written to work.outputs[i]. batch(sets) may stand for run(i) of one
    set after the other. clock: start() and stop() -> seconds between events on the device's own queue, for the metrics of a GPU."""

    run: Callable[[int], Any]
    wait: Callable[[], None] = lambda: None
    fetch: Optional[Callable[[int], Mapping[str, Any]]] = None
    batch: Optional[Callable[[List[int]], None]] = None
    clock: Optional[Any] = None
    device: str = "cpu"
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    binaries: List[str] = dataclasses.field(default_factory=list)  # files whose bytes decide what runs
    notes: List[str] = dataclasses.field(default_factory=list)  # what a reader of the row must know

    def metrics(self):
        """The kinds of metrics it can be timed by."""
        return ("e2e", "gpu") if self.clock else ("e2e",)


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    make: Callable[[Work], Any]
    requires: tuple
    yardstick: Optional[str]  # "copy" or "read"

    def subject(self, work):
        made = self.make(work)
        return made if isinstance(made, Subject) else Subject(run=made)


def peer(name, *, requires=(), yardstick=None):
    """Registers the function below as a peer. requires: what pip must install for it. yardstick: it computes nothing: it copies as many
    bytes as the program moves ("copy"), or reads them ("read")."""

    def register(function):
        known = PEERS.get(name)
        if known and known.make.__module__ != function.__module__:
            raise ValueError(f"two peers are called {name}: in {known.make.__module__} and in {function.__module__}")
        PEERS[name] = Peer(name, function, tuple(requires), yardstick)
        return function

    return register


def load_peers():
    """All peers: those of bench/peers (but for files whose names begin with _) and those registered already."""
    package = importlib.import_module("bench.peers")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"bench.peers.{module.name}")
    return PEERS
