# The small benchmark that the tests run.
# SPDX-License-Identifier: Apache-2.0
"""Everything once, on small arrays, in seconds: ours in two settings, every peer, a copy."""
from bench.core import Array, Benchmark, Case, Cosmati, Settings

benchmark = Benchmark(
    cases=[
        Case("softmax 37x129", "softmax", {"x": Array("f32", 37, 129)}),
        Case("layer norm 5x64", "layer_norm", {"x": Array("f32", 5, 64), "gamma": Array("f32", 64), "beta": Array("f32", 64)}, {"eps": 1e-5}),
    ],
    variants=[
        Cosmati(),
        Cosmati("cosmati, one lane", knobs={"lanes": 1}),
        "copy", "numpy", "onednn", "onnxruntime", "torch", "torch.compile", "triton", "driver copy",
    ],  # fmt: skip
    settings=Settings(rounds=2, target_s=0.0005, warmup_s=0.0005, pause_s=0.0, single_samples=3, metrics=("e2e_batch", "e2e_single")),
)
