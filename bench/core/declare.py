# What a benchmark declares: cases, variants, how long and how often.
# SPDX-License-Identifier: Apache-2.0
"""A benchmark is a Python file with an attribute `benchmark`."""
import dataclasses
import math
from typing import Mapping, Optional, Sequence, Union

METRICS = {
    "e2e_batch": "wall time of calls one after the other, waited for once at the end, divided by their number",
    "e2e_single": "wall time of one call that is waited for",
    "gpu_batch": "time on the device between events around calls one after the other, divided by their number",
    "gpu_single": "time on the device between events around one call",
}


@dataclasses.dataclass(frozen=True)
class Array:
    """An input that is generated from the seed: Array("f32", 37, 1537) is normal, Array("i32", 8, values=(0, 100)) integers of 0 .. 99.

    values: "normal", "uniform" (0 .. 1), "zeros", "ones", or a range of integers.
    """

    dtype: str
    shape: tuple
    values: Union[str, tuple]

    def __init__(self, dtype, *shape, values="normal"):
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "values", tuple(values) if isinstance(values, (list, tuple)) else values)

    def generator(self):
        return self.values if isinstance(self.values, str) else f"integers {self.values[0]} .. {self.values[1] - 1}"

    def elements(self):
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Case:
    """A program at some inputs.

    program: what cosmati.load takes, or a text. operation: what peers are asked for; by default the name of the program. Peers find
    the arrays under the names of the program's parameters.
    """

    name: str
    program: str
    inputs: Mapping[str, Array]
    scalars: Mapping[str, float] = dataclasses.field(default_factory=dict)
    operation: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Cosmati:
    """A variant of ours. device, threads, knobs and plan as cosmati.load takes them."""

    name: str = "cosmati"
    device: Optional[str] = None
    threads: int = 0
    knobs: Mapping[str, object] = dataclasses.field(default_factory=dict)
    plan: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """rounds: at least so many; whole balanced designs are run. A visit is one variant's part of a round: a pause, a warm-up, and then
    `samples` samples of at least `target_s` seconds each (of `single_samples` calls each, where a metric times single calls). cold:
    calls go through sets of inputs and outputs that together are larger than the last-level cache twice over."""

    metrics: tuple = ("e2e_batch",)
    rounds: int = 8
    samples: int = 1
    single_samples: int = 21
    target_s: float = 0.02
    warmup_s: float = 0.02
    pause_s: float = 0.005
    cold: bool = False
    seed: int = 0

    def visit_s(self, metric):
        """How long a visit is expected to take."""
        timed = self.single_samples * 1e-3 if metric.endswith("single") else self.samples * self.target_s
        return self.pause_s + self.warmup_s + timed


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """variants: Cosmati(...) and names of peers, each a row of every case. baseline: the variant that the others are held against, by
    name; the first by default."""

    cases: Sequence[Case]
    variants: Sequence[Union[Cosmati, str]]
    baseline: Optional[str] = None
    settings: Settings = Settings()

    def names(self):
        return [variant if isinstance(variant, str) else variant.name for variant in self.variants]


def problems(benchmark):
    """What is wrong with a declaration, one sentence each."""
    names, settings = benchmark.names(), benchmark.settings
    for what, listed in (("variant", names), ("case", [case.name for case in benchmark.cases])):
        if not listed:
            yield f"there is no {what}"
        for name in sorted({name for name in listed if listed.count(name) > 1}):
            yield f"two {what}s are called {name}"
    if benchmark.baseline is not None and benchmark.baseline not in names:
        yield f"the baseline {benchmark.baseline} is no variant; the variants are {', '.join(names)}"
    for metric in settings.metrics:
        if metric not in METRICS:
            yield f"there is no metric {metric}; the metrics are {', '.join(METRICS)}"
    if not settings.metrics:
        yield "there is no metric"
    for field in ("rounds", "samples", "single_samples"):
        if getattr(settings, field) < 1:
            yield f"{field} is {getattr(settings, field)}; at least 1 is needed"
    for field in ("target_s", "warmup_s", "pause_s"):
        if not 0 <= getattr(settings, field) < math.inf:
            yield f"{field} is {getattr(settings, field)}; a number of seconds is needed"
