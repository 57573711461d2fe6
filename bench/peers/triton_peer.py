# Triton on a CUDA device: the row kernels of _triton_kernels.py.
# SPDX-License-Identifier: Apache-2.0
"""The peer "triton"."""
from bench.core import Absent, Subject, peer
from bench.peers import _cuda

LARGEST_BLOCK = 1 << 16  # a row lies in the registers of one program


def _launches(kernels, rows, cols, block, scalars):
    """operation -> (a launch on tensors by name)."""
    warps = min(16, max(1, block // 256))
    return {
        "softmax": lambda x, y: kernels.softmax[(rows,)](x, y, cols, BLOCK=block, LOG=False, num_warps=warps),
        "log_softmax": lambda x, y: kernels.softmax[(rows,)](x, y, cols, BLOCK=block, LOG=True, num_warps=warps),
        "layer_norm": lambda x, gamma, beta, y: kernels.layer_norm[(rows,)](
            x, gamma, beta, y, cols, scalars.get("eps", 1e-5), BLOCK=block, num_warps=warps
        ),
        "rms_norm": lambda x, w, y: kernels.rms_norm[(rows,)](x, w, y, cols, scalars.get("eps", 1e-6), BLOCK=block, num_warps=warps),
        "sum": lambda x, y: kernels.sum_rows[(rows,)](x, y, cols, BLOCK=block, num_warps=warps),
    }


@peer("triton")
def triton_(work):
    torch = _cuda.torch_on_cuda()
    try:
        import triton
    except ImportError:
        raise Absent("triton is not installed") from None
    from bench.peers import _triton_kernels as kernels

    x = work.inputs[0].get("x")
    cols = x.shape[-1] if x is not None and x.ndim else 0
    launches = _launches(kernels, x.size // cols if cols else 0, cols, triton.next_power_of_2(max(cols, 1)), work.scalars)
    if work.operation not in launches:
        raise Absent(f"no {work.operation} is written in Triton here")
    if not 0 < cols <= LARGEST_BLOCK or not x.size:
        raise Absent(f"a row of {cols} elements does not fit one program of these kernels")
    launch = launches[work.operation]
    inputs, outputs = _cuda.on_device(torch, work.inputs), _cuda.on_device(torch, work.outputs)
    return Subject(
        run=lambda i: launch(**inputs[i], **outputs[i]),
        wait=torch.cuda.synchronize,
        fetch=lambda i: _cuda.to_host(outputs[i]),
        clock=_cuda.EventClock(torch),
        device="cuda",
        versions={**_cuda.versions(torch), "triton": triton.__version__},
    )
