# What the first run of each shipped program costs: a fresh process that plans, compiles and runs it, and one that finds it compiled.
# SPDX-License-Identifier: Apache-2.0
"""The first run of every shipped program: whole processes of the tool, on small arrays, so that planning and compiling are what counts."""
import json
import os
import subprocess
import tempfile
import time

from bench.core import Absent, Benchmark, Figure, Measured, provenance

REPEATS = 9
ARGUMENTS = {
    "add_rms_norm": "x=f32[37,1537]:normal res=f32[37,1537]:normal w=f32[1537]:normal",
    "argmax": "x=f32[37,1537]:normal",
    "attention": "q=f32[1,8,16,64]:normal k=f32[1,2,48,64]:normal v=f32[1,2,48,64]:normal",
    "attention_ragged": "q=f32[24,8,64]:normal k=f32[24,2,64]:normal v=f32[24,2,64]:normal off=i32[4]:zeros seq=i32[24]:zeros scale=0.125",
    "attention_window": "q=f32[1,8,16,64]:normal k=f32[1,2,48,64]:normal v=f32[1,2,48,64]:normal w=8 scale=0.125",
    "bias_gelu": "x=f32[37,1537]:normal b=f32[1537]:normal",
    "column_sums": "x=f32[37,1537]:normal",
    "conv_valid": "x=f32[4,18,18]:normal w=f32[8,4,3,3]:normal",
    "cross_entropy": "x=f32[37,1537]:normal label=i32[37]:index",
    "decode": "q=f32[4,8,64]:normal k=f32[4,2,128,64]:normal v=f32[4,2,128,64]:normal len=i32[4]:index scale=0.125",
    "decode_paged": "q=f32[4,8,64]:normal k=f32[32,16,2,64]:normal v=f32[32,16,2,64]:normal table=i32[4,8]:index len=i32[4]:index scale=0.125",
    "layer_norm": "x=f32[37,1537]:normal gamma=f32[1537]:normal beta=f32[1537]:normal",
    "layer_norm_backward": "x=f32[37,1537]:normal dy=f32[37,1537]:normal gamma=f32[1537]:normal",
    "linear_gelu": "a=f32[32,64]:normal w=f32[48,64]:normal bias=f32[48]:normal res=f32[32,48]:normal",
    "linear_recurrence": "a=f32[2,64,48]:uniform x=f32[2,64,48]:normal",
    "log_softmax": "x=f32[37,1537]:normal",
    "logsumexp": "x=f32[37,1537]:normal",
    "matmul": "a=f32[64,48]:normal b=f32[48,64]:normal",
    "min_max": "x=f32[37,1537]:normal",
    "quantize_rows": "x=f32[37,1537]:normal",
    "rms_norm": "x=f32[37,1537]:normal w=f32[1537]:normal",
    "rope": "x=f32[16,4,64]:normal pos=i32[16]:index cs=f32[32,32]:normal sn=f32[32,32]:normal",
    "softmax": "x=f32[37,1537]:normal",
    "sum": "x=f32[37,1537]:normal",
    "swiglu": "gu=f32[37,1536]:normal",
    "transpose": "x=f32[64,48]:normal",
}


def run(program, folder, *more):
    """Milliseconds of the process, and what it says."""
    tool = provenance.built("cosmati")
    if tool is None:
        raise Absent("cosmati is not built; ./dev bench builds it")
    command = [str(tool), "run", program, *ARGUMENTS[program].split(), "--json", *more]
    start = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COSMATI_CACHE_DIR": folder})
    spent = time.perf_counter() - start
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
    return spent * 1e3, json.loads(ran.stdout)


def compiles(program, folder, wanted):
    spent, said = run(program, folder)
    if said["compiles"] != wanted:
        raise AssertionError(f"{program} compiled {said['compiles']} kernels, and not {wanted}")
    return spent


def first_run_ms(program):
    def measure(_):
        run(program, "", "--check")
        samples = []
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory() as folder:
                samples.append(compiles(program, folder, 1))
                again = compiles(program, folder, 0)
        return Measured(samples, notes=[f"{again:.1f} ms when the cache has it"])

    return measure


def programs_without_arguments(_):
    shipped = {path.stem for path in (provenance.ROOT / "programs").glob("*.tile")}
    return Measured([len(shipped ^ set(ARGUMENTS))])


benchmark = Benchmark(
    bars=[Figure("shipped programs that have no figure here", programs_without_arguments, 0)]
    + [Figure(f"{program}, planned, compiled and run by a fresh process", first_run_ms(program), 150, "ms") for program in sorted(ARGUMENTS)],
)
