# What the peers on a GPU share: torch on its device, and time between events.
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the peers that run on CUDA through torch."""
from bench.core import Absent


def torch_on_cuda():
    """The module torch, where it sees a CUDA device. Raises Absent."""
    try:
        import torch
    except ImportError:
        raise Absent("torch is not installed") from None
    if not torch.cuda.is_available():
        raise Absent(f"torch {torch.__version__} sees no CUDA device")
    return torch


def versions(torch):
    return {"torch": torch.__version__, "CUDA of torch": str(torch.version.cuda), "GPU": torch.cuda.get_device_name()}


def on_device(torch, sets):
    """The sets as tensors on the device."""
    return [{name: torch.from_numpy(array.copy()).cuda() for name, array in arrays.items()} for arrays in sets]


def to_host(tensors):
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


class EventClock:
    """Seconds between two events on the current stream of torch."""

    def __init__(self, torch):
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def start(self):
        self.begin.record()

    def stop(self):
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) / 1000
