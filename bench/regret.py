# How far the planner's choice is from the best plan that can be found, on programs and shapes that a seed draws.
# SPDX-License-Identifier: Apache-2.0
"""Regret of the planner: its plan beside the eight fastest of many, on (program, shape) pairs drawn from --seed.

Of each pair the settings of the knobs are tried once, each checked: all there are where they are few, else every value of every knob by
itself and random ones, until there are 200 plans, and then 200 more of random settings. The eight fastest are timed beside the
planner's own choice in paired rounds. The regret of a pair is the time of the choice over that of the fastest, at least 1. A plan that computes
something wrong becomes a row that says so.
"""
import itertools
import json
import math
import random
import time
from concurrent.futures import ThreadPoolExecutor

from bench.core import Absent, Array, Benchmark, Case, Cosmati, Figure, Measured, Settings

PAIRS, WANTED, ENUMERATED, RANDOM, FINALISTS, HOPELESS, PATIENCE, AT_ONCE = 400, 60, 200, 200, 8, 10.0, 4000, 16
SMALLEST, LARGEST = 1 << 14, 60 << 20  # bytes of the arrays of a pair
SAMPLE_S = 0.002
ELEMENT = {"f32": 4, "bf16": 2}
CHOSEN = "chosen"

ROWS = ("softmax", "log_softmax", "layer_norm", "rms_norm", "add_rms_norm", "sum", "min_max", "argmax", "logsumexp", "quantize_rows", "bias_gelu",
        "swiglu", "cross_entropy", "column_sums", "transpose", "layer_norm_backward")  # fmt: skip
OTHERS = ("matmul", "linear_gelu", "attention", "decode", "conv_valid", "linear_recurrence")


# ---- pairs -----------------------------------------------------------------------------------------------------------
def log_uniform(draw, low, high):
    """Half of the time a multiple of 8, which most real shapes are."""
    n = round(math.exp(draw.uniform(math.log(low), math.log(high))))
    return max(8, n // 8 * 8) if draw.random() < 0.5 and n > 8 else max(1, n)


def rows_inputs(draw, program, dtype):
    reading = ("sum", "min_max", "argmax", "logsumexp", "cross_entropy", "column_sums")
    matrices = {"add_rms_norm": 4, "layer_norm_backward": 3, **dict.fromkeys(reading, 1)}.get(program, 2)
    elements = log_uniform(draw, SMALLEST, LARGEST) // (matrices * ELEMENT[dtype])
    cols = log_uniform(draw, 3, min(elements, 65536))
    rows = max(1, elements // cols)
    cols += cols % 2 if program == "swiglu" else 0
    x, v = Array(dtype, rows, cols), Array(dtype, cols)
    return f"{rows}x{cols}", {
        "layer_norm": {"x": x, "gamma": v, "beta": v}, "rms_norm": {"x": x, "w": v}, "add_rms_norm": {"x": x, "res": x, "w": v},
        "layer_norm_backward": {"x": x, "dy": x, "gamma": v}, "bias_gelu": {"x": x, "b": v}, "swiglu": {"gu": x},
        "cross_entropy": {"x": x, "label": Array("i32", rows, values=(0, cols))},
    }.get(program, {"x": x}), {}  # fmt: skip


def other_inputs(draw, program, dtype):
    if program in ("matmul", "linear_gelu"):
        m, n, k = (log_uniform(draw, 16, 512) for _ in range(3))
        b = Array(dtype, k, n) if program == "matmul" else Array(dtype, n, k)
        rest = {"b": b} if program == "matmul" else {"w": b, "bias": Array(dtype, n), "res": Array(dtype, m, n)}
        return f"{m}x{n}x{k}", {"a": Array(dtype, m, k), **rest}, {}
    if program == "attention":
        s, c, d = log_uniform(draw, 16, 128), log_uniform(draw, 128, 512), draw.choice((32, 64, 80))
        return f"1x4x{s}x{c}x{d}", {"q": Array(dtype, 1, 4, s, d), "k": Array(dtype, 1, 2, c, d), "v": Array(dtype, 1, 2, c, d)}, {}
    if program == "decode":
        b, c, d = log_uniform(draw, 1, 16), log_uniform(draw, 64, 2048), draw.choice((64, 128))
        kv = Array(dtype, b, 2, c, d)
        return f"{b}x8x{c}x{d}", {"q": Array(dtype, b, 8, d), "k": kv, "v": kv, "len": Array("i32", b, values=(c // 2, c + 1))}, {"scale": d**-0.5}
    if program == "conv_valid":
        f, c, i, j = log_uniform(draw, 4, 32), log_uniform(draw, 1, 16), log_uniform(draw, 8, 64), log_uniform(draw, 8, 64)
        return f"{f}x{c}x{i}x{j}", {"x": Array(dtype, c, i + 2, j + 2), "w": Array(dtype, f, c, 3, 3)}, {}
    b, t, d = log_uniform(draw, 1, 8), log_uniform(draw, 16, 512), log_uniform(draw, 8, 512)
    return f"{b}x{t}x{d}", {"a": Array(dtype, b, t, d, values="uniform"), "x": Array(dtype, b, t, d)}, {}


def pairs(seed):
    draw, names = random.Random(seed), set()
    while len(names) < PAIRS:
        program = draw.choice(ROWS if draw.random() < 0.75 else OTHERS)
        dtype = "f32" if draw.random() < 0.7 else "bf16"
        shape, inputs, scalars = (rows_inputs if program in ROWS else other_inputs)(draw, program, dtype)
        name = f"{program} {dtype} {shape}"
        if name not in names:
            names.add(name)
            yield Case(name, program, inputs, scalars, variants=lambda material, salt=f"{seed}/{name}": screened(material, salt))


# ---- screening -------------------------------------------------------------------------------------------------------
def settings_of(space, draw):
    """Settings of the knobs, without end: every combination where there are few; else every value alone, and then random ones."""
    choices = [[None, *knob.values] for knob in space]
    if math.prod(map(len, choices)) <= ENUMERATED + RANDOM:
        everything = [{knob.knob: value for knob, value in zip(space, values) if value is not None} for values in itertools.product(*choices)]
        draw.shuffle(everything)
        yield from everything
        return
    singles = [{knob.knob: value} for knob in space for value in knob.values]
    draw.shuffle(singles)
    yield from singles
    while True:
        yield {knob.knob: draw.choice(knob.values) for knob in draw.sample(space, min(len(space), draw.randint(2, 4)))}


class Screen:
    """Tries settings of one pair, each that plans something new once. They are compiled several at a time, and timed alone."""

    def __init__(self, material):
        import cosmati

        self.cosmati, self.material = cosmati, material
        self.outputs = material.sets.outputs[0]
        self.arguments = {**material.sets.inputs[0], **material.case.scalars, "out": dict(self.outputs)}
        self.seen, self.timed, self.odd, self.best_s = set(), [], [], None

    def planned(self, knobs):
        """A function of the setting, or None where it is not legal or its plan is not new."""
        function = self.cosmati.load(self.material.case.program, knobs=knobs, cache="")
        try:
            mapping = json.dumps(json.loads(function.plan(**self.arguments))["mapping"], sort_keys=True)
        except self.cosmati.Error as refused:
            if refused.code != "bad_knob":
                raise
            return None
        if mapping in self.seen:
            return None
        self.seen.add(mapping)
        return function

    def measure(self, planned):
        """Of pairs (setting, function)."""
        with ThreadPoolExecutor(self.material.run.threads) as pool:
            list(pool.map(lambda one: one[1](**self.arguments), planned))  # what the calls write is not looked at
        for knobs, function in planned:
            self.material.sets.poison()
            begin = time.perf_counter()
            function(**self.arguments)
            once_s = time.perf_counter() - begin
            if not all(row["ok"] for row in self.material.checker.check("before", 0, self.outputs)):
                self.odd.append(knobs)
            elif self.best_s is None or once_s < HOPELESS * self.best_s:
                self.timed.append((self._sample(function, once_s), knobs))
                self.best_s = min(self.best_s or once_s, self.timed[-1][0])

    def _sample(self, function, once_s):
        calls = max(1, min(10000, round(SAMPLE_S / max(once_s, 1e-6))))
        begin = time.perf_counter()
        for _ in range(calls):
            function(**self.arguments)
        return (time.perf_counter() - begin) / calls


def screened(material, salt):
    """The variants of a pair: the planner's choice, the fastest other plans, and some of those that are wrong."""
    screen, draw = Screen(material), random.Random(salt)
    screen.measure([({}, screen.planned({}))])
    attempts, planned = 0, []
    for knobs in settings_of(material.function.knobs(**material.sets.inputs[0], **material.case.scalars), draw):
        attempts += 1
        function = screen.planned(knobs)
        planned += [(knobs, function)] if function else []
        if len(planned) == AT_ONCE:
            screen.measure(planned)
            planned = []
            material.run.say(f"{material.case.name}: {len(screen.seen)} plans of {attempts} settings")
        if len(screen.seen) > ENUMERATED + RANDOM or attempts >= PATIENCE:
            break
    screen.measure(planned)
    others = sorted((entry for entry in screen.timed if entry[1]), key=lambda entry: entry[0])[:FINALISTS]
    names = [f"plan {number + 1} of {len(screen.seen)}" for number in range(len(others))]
    wrong = [Cosmati(f"wrong plan {number + 1}", knobs=knobs) for number, knobs in enumerate(screen.odd[:3]) if knobs]
    return [Cosmati(CHOSEN), *(Cosmati(name, knobs=knobs) for name, (_, knobs) in zip(names, others)), *wrong]


# ---- what the pairs say ----------------------------------------------------------------------------------------------
def regrets(document):
    """{pair: regret} of the pairs that were measured."""
    found = {}
    for case in document["cases"]:
        ratios = [pair["median"] for pair in case["pairs"] if pair["baseline"] == CHOSEN]
        if ratios or any(summary["variant"] == CHOSEN for summary in case["summaries"]):
            found[case["name"]] = max(1.0, 1 / min(ratios, default=1.0))
    if not found:
        raise Absent("no pair was measured")
    return found


def median(document):
    found = regrets(document)
    return Measured(list(found.values()), notes=[f"{len(found)} pairs"])


def worst(document):
    found = regrets(document)
    name = max(found, key=found.get)
    return Measured(list(found.values()), found[name], [name])


def done(document):
    return Measured([len(regrets(document))])


def benchmark(seed):
    return Benchmark(
        cases=list(pairs(seed)),
        bars=[
            Figure("regret, median of the pairs", median, 1.05, "ratio"),
            Figure("regret, worst of the pairs", worst, 1.25, "ratio"),
            Figure("pairs that were measured", done, WANTED, rule="at least"),
        ],
        baseline=CHOSEN,
        sampled=True,
        requires=["ml_dtypes"],
        settings=Settings(rounds=8, target_s=0.01, warmup_s=0.002, pause_s=0.001, minutes=30),
    )
