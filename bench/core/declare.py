# What a benchmark declares: cases, variants, how long and how often.
# SPDX-License-Identifier: Apache-2.0
"""A benchmark is a Python file with an attribute `benchmark`: a Benchmark, or a function of the seed that makes one."""
import dataclasses
import math
from typing import Any, Callable, Mapping, Optional, Sequence, Union

METRICS = {
    "e2e_batch": "wall time of calls one after the other, waited for once at the end, divided by their number",
    "e2e_single": "wall time of one call that is waited for",
    "gpu_batch": "time on the device between events around calls one after the other, divided by their number",
    "gpu_single": "time on the device between events around one call",
}


@dataclasses.dataclass(frozen=True)
class Array:
    """An input that is generated from the seed: Array("f32", 37, 1537) is normal, Array("i32", 8, values=(0, 100)) integers of 0 .. 99.

    values: "normal", "uniform" (0 .. 1), "zeros", "ones", or a range of integers. period: the values come again after so many of the
    first dimension, 0 for never. The oracle is then asked for one period only, and every period of every output is held against it:
    that is for large arrays of programs whose rows know nothing of one another.
    """

    dtype: str
    shape: tuple
    values: Union[str, tuple]
    period: int

    def __init__(self, dtype, *shape, values="normal", period=0):
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "values", tuple(values) if isinstance(values, (list, tuple)) else values)
        object.__setattr__(self, "period", period)

    def generator(self):
        text = self.values if isinstance(self.values, str) else f"integers {self.values[0]} .. {self.values[1] - 1}"
        return text + (f", again after {self.period}" if self.period else "")

    def repeats(self):
        return self.shape[0] // self.period if self.period else 1

    def elements(self):
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Case:
    """A program at some inputs.

    program: what cosmati.load takes, or a text. operation: what peers are asked for; by default the name of the program. Peers find
    the arrays under the names of the program's parameters. off: how many elements behind a multiple of 64 bytes every array begins.
    cold: as in Settings, which says it where a case does not. variants: instead of those of the benchmark; or a function that finds
    them, given the case's Material (bench/core/run.py).
    """

    name: str
    program: str
    inputs: Mapping[str, Array]
    scalars: Mapping[str, float] = dataclasses.field(default_factory=dict)
    operation: Optional[str] = None
    off: int = 0
    cold: Optional[bool] = None
    variants: Union[None, Sequence[Any], Callable[[Any], Sequence[Any]]] = None


@dataclasses.dataclass(frozen=True)
class Cosmati:
    """A variant of ours. device, threads, knobs and plan as cosmati.load takes them. case: it computes this one instead of the case that
    it is a variant of: one of our own programs at another shape, for comparison."""

    name: str = "cosmati"
    device: Optional[str] = None
    threads: int = 0
    knobs: Mapping[str, object] = dataclasses.field(default_factory=dict)
    plan: Optional[str] = None
    case: Optional[Case] = None


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
    minutes: Optional[float] = None  # how long a run may take: later cases have fewer rounds (whole designs), or are not begun

    def visit_s(self, metric):
        """How long a visit is expected to take."""
        timed = self.single_samples * 1e-3 if metric.endswith("single") else self.samples * self.target_s
        return self.pause_s + self.warmup_s + timed


@dataclasses.dataclass(frozen=True)
class Speed:
    """A bar on speed: the time of the fastest of the variants `against` over that of `variant`, by the first metric, is at least `limit`."""

    what: str
    case: str
    against: Sequence[str]
    limit: float
    variant: str = "cosmati"


@dataclasses.dataclass(frozen=True)
class Measured:
    """value: of a figure; the median of the samples where it is None."""

    samples: Sequence[float]
    value: Optional[float] = None
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Figure:
    """A bar on something else: `measure`, given the results so far (a document of the schema), returns Measured, and raises Absent or
    any error where it cannot. Figures are measured after all cases."""

    what: str
    measure: Callable[[Mapping[str, Any]], Measured]
    limit: float
    unit: str = ""
    rule: str = "at most"  # or "at least"


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """variants: Cosmati(...) and names of peers, each a row of every case. baseline: the variant that the others are held against, by
    name; the first by default. bars: what must hold. sampled: the cases are a sample, as many as there is time for, and none is cut short for
    the sake of later ones. requires: what pip must install beside what the peers ask for, required: peers that
    must not be absent. targets: what CMake must build."""

    cases: Sequence[Case] = ()
    variants: Sequence[Union[Cosmati, str]] = ()
    baseline: Optional[str] = None
    settings: Settings = Settings()
    bars: Sequence[Union[Speed, Figure]] = ()
    sampled: bool = False
    requires: Sequence[str] = ()
    required: Sequence[str] = ()
    targets: Sequence[str] = ()

    def names(self):
        return [name_of(variant) for variant in self.variants]

    def variants_of(self, case):
        """Of one case; what a function will find is not known yet."""
        return self.variants if case.variants is None or callable(case.variants) else case.variants

    def all_names(self):
        """The names of every variant that is declared, each once."""
        return list(dict.fromkeys(self.names() + [name_of(v) for case in self.cases for v in self.variants_of(case)]))


def name_of(variant):
    return variant if isinstance(variant, str) else variant.name


def problems(benchmark):
    """What is wrong with a declaration, one sentence each."""
    settings = benchmark.settings
    cases = {case.name: case for case in benchmark.cases}
    listed = {"case": [[case.name for case in benchmark.cases]] if benchmark.cases or not benchmark.bars else []}
    listed["variant"] = [list(map(name_of, benchmark.variants_of(case))) for case in benchmark.cases if not callable(case.variants)]
    for what, lists in listed.items():
        if not all(lists):
            yield f"there is no {what}"
        for name in sorted({name for names in lists for name in names if names.count(name) > 1}):
            yield f"two {what}s are called {name}"
    names = benchmark.all_names()
    finding = any(callable(case.variants) for case in benchmark.cases)
    if benchmark.baseline is not None and benchmark.baseline not in names and not finding:
        yield f"the baseline {benchmark.baseline} is no variant; the variants are {', '.join(names)}"
    for bar in benchmark.bars:
        if isinstance(bar, Speed):
            if bar.case not in cases:
                yield f"the bar {bar.what} is of a case {bar.case}, which there is not"
            elif missing := {bar.variant, *bar.against} - set(map(name_of, benchmark.variants_of(cases[bar.case]))):
                yield f"the bar {bar.what} compares {', '.join(sorted(missing))}, which {bar.case} has not"
        elif bar.rule not in ("at most", "at least"):
            yield f"the rule of {bar.what} is {bar.rule}; there are at most and at least"
    for case in benchmark.cases:
        if any(array.period and (array.shape[0] % array.period or array.period < 0) for array in case.inputs.values()):
            yield f"the period of an input of {case.name} does not divide its first dimension"
        if len({(array.shape[0], array.period) for array in case.inputs.values() if array.period}) > 1:
            yield f"inputs of {case.name} have different periods or first dimensions"
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
    if benchmark.sampled and settings.minutes is None:
        yield "cases that are a sample need minutes"
    if settings.minutes is not None and not 0 < settings.minutes < math.inf:
        yield f"minutes is {settings.minutes}; a number above 0 is needed"
