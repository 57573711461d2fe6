# torch on a CUDA device: its own operators one by one, and compiled.
# SPDX-License-Identifier: Apache-2.0
"""The peers "torch" and "torch.compile"."""
from bench.core import Absent, Subject, peer
from bench.peers import _cuda


def _functions(torch, scalars):
    """operation -> (what computes it from the inputs by name, the name of the output)."""
    F = torch.nn.functional
    return {
        "softmax": (lambda x: torch.softmax(x, -1), "y"),
        "log_softmax": (lambda x: torch.log_softmax(x, -1), "y"),
        "layer_norm": (lambda x, gamma, beta: F.layer_norm(x, x.shape[-1:], gamma, beta, scalars.get("eps", 1e-5)), "y"),
        "rms_norm": (lambda x, w: F.rms_norm(x, x.shape[-1:], w, scalars.get("eps", 1e-6)), "y"),
        "sum": (lambda x: torch.sum(x, -1), "y"),
        "column_sums": (lambda x: torch.sum(x, 0), "s"),
        "matmul": (lambda a, b: torch.matmul(a, b), "c"),
    }


def _into(torch):
    """operation -> what computes it into an output that is there already; the others allocate theirs."""
    return {
        "softmax": lambda x, out: torch.softmax(x, -1, out=out),
        "log_softmax": lambda x, out: torch.log_softmax(x, -1, out=out),
        "sum": lambda x, out: torch.sum(x, -1, out=out),
        "column_sums": lambda x, out: torch.sum(x, 0, out=out),
        "matmul": lambda a, b, out: torch.matmul(a, b, out=out),
    }


def _subject(work, make):
    """make(torch, operation, name of the output) -> (function of the inputs [and out=], whether it takes out=, notes)."""
    torch = _cuda.torch_on_cuda()
    functions = _functions(torch, work.scalars)
    if work.operation not in functions:
        raise Absent(f"no {work.operation} is written for torch here")
    output = functions[work.operation][1]
    function, takes_out, notes = make(torch, functions[work.operation][0])
    inputs, results = _cuda.on_device(torch, work.inputs), _cuda.on_device(torch, work.outputs)

    def into(i):
        function(**inputs[i], out=results[i][output])

    def allocating(i):
        results[i][output] = function(**inputs[i])

    return Subject(
        run=into if takes_out else allocating,
        wait=torch.cuda.synchronize,
        fetch=lambda i: _cuda.to_host(results[i]),
        clock=_cuda.EventClock(torch),
        device="cuda",
        versions=_cuda.versions(torch),
        binaries=[torch._C.__file__],
        notes=notes + ([] if takes_out else ["its output is allocated while it is timed"]),
    )


@peer("torch")
def torch_eager(work):
    def make(torch, function):
        into = _into(torch).get(work.operation)
        return (into, True, []) if into else (function, False, [])

    return _subject(work, make)


@peer("torch.compile")
def torch_compiled(work):
    def make(torch, function):
        try:
            import triton  # noqa: F401
        except ImportError:
            raise Absent("triton, which torch.compile needs, is not installed") from None
        return torch.compile(function, fullgraph=True, dynamic=False), False, ["default mode"]

    return _subject(work, make)
