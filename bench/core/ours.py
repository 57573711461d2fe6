# Variants of our own: a program with options, as a subject of measurement.
# SPDX-License-Identifier: Apache-2.0
"""Programs of cases, and Cosmati variants of them."""
import functools
import json

from bench.core.peers import Subject

# What is emitted for a device and kept beside the plan.
EMITTED = {"cpu": ("kernel", "asm"), "sim": ("kernel",), "oracle": ("tile",)}


def program_of(case, **options):
    """The case's program as a cosmati.Function. Raises cosmati.Error."""
    import cosmati

    if "{" in case.program:
        return cosmati.program(case.program, **options)
    return cosmati.load(case.program, **options)


def subject(case, variant, work):
    """(Subject, plan JSON, [(form, text)]) of a Cosmati variant. Raises cosmati.Error."""
    function = program_of(case, threads=variant.threads, knobs=variant.knobs, plan=variant.plan, device=variant.device)
    order = [parameter.name for parameter in function.parameters if parameter.kind == "in"]
    calls = [
        functools.partial(function, *(inputs[name] for name in order), **work.scalars, out=dict(outputs))
        for inputs, outputs in zip(work.inputs, work.outputs)
    ]
    asked = {**work.inputs[0], **work.scalars, "out": dict(work.outputs[0])}
    plan = function.plan(**asked)
    device = json.loads(plan)["target"]
    sources = [(form, function.source(**asked, as_=form)) for form in EMITTED.get(device, ("kernel",))]
    return Subject(run=lambda i: calls[i](), device=device), plan, sources
