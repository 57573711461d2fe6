# How much slower the chosen plan is than the best candidate, on random programs and shapes: `pairs.py build/no-llvm/bench/gpu/gpu_rows SEED COUNT`.
# SPDX-License-Identifier: Apache-2.0
import random
import re
import subprocess
import sys

PROGRAMS = {
    "softmax": "x=T[R,C]:normal",
    "log_softmax": "x=T[R,C]:normal",
    "rms_norm": "x=T[R,C]:normal w=T[C]:normal",
    "layer_norm": "x=T[R,C]:normal gamma=T[C]:normal beta=T[C]:normal",
}


def main():
    tool, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    regrets = []
    for _ in range(count):
        program = random.choice(sorted(PROGRAMS))
        dtype = random.choice(["f32", "f32", "bf16"])
        columns, elements = int(2 ** random.uniform(5, 18)), 2 ** random.uniform(16, 26)
        if random.random() < 0.5:  # as most arrays are in practice
            columns = (columns + 31) // 32 * 32
        arguments = PROGRAMS[program].replace("T", dtype).replace("R", str(max(1, int(elements / columns)))).replace("C", str(columns))
        out = subprocess.run([tool, program, *arguments.split(), "--all"], capture_output=True, text=True, timeout=120)
        print(out.stdout or out.stderr, end="", flush=True)
        found = re.search(r"regret ([\d.]+)", out.stdout)
        if not found:
            sys.exit(f"{program} {arguments}: no result")
        regrets.append(float(found[1]))
    regrets.sort()
    print(f"regret of {len(regrets)} pairs: median {regrets[(len(regrets) - 1) // 2]}, nine in ten {regrets[len(regrets) * 9 // 10 - 1]}, worst {regrets[-1]}")


main()
