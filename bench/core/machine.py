# What this machine is and how busy it is: processor, caches, clocks, governor, load, GPUs.
# SPDX-License-Identifier: Apache-2.0
"""Facts read from the system. What a system does not tell is None or an empty list, never a guess."""
import os
import pathlib
import platform
import re
import shutil
import subprocess


def _read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def processor():
    found = re.search(r"^model name\s*: (.*)$", _read("/proc/cpuinfo") or "", re.M)
    return found.group(1) if found else platform.processor() or platform.machine()


def affinity():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bytes(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def _cores(text):
    """How many cores a list as "0-3,8" names."""
    return sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in text.split(","))


def caches(root="/sys/devices/system/cpu/cpu0/cache"):
    """The caches of the first core: level, kind, bytes, and how many cores share each."""
    found = []
    for folder in sorted(pathlib.Path(root).glob("index*")):
        facts = [_read(folder / name) for name in ("level", "type", "size", "shared_cpu_list")]
        if all(facts):
            found.append({"level": int(facts[0]), "kind": facts[1].lower(), "bytes": _bytes(facts[2]), "cores": _cores(facts[3])})
    return found


def last_level_bytes(found):
    """The size of the largest cache of the highest level, or None."""
    return max(((cache["level"], cache["bytes"]) for cache in found if cache["kind"] != "instruction"), default=(0, None))[1]


def memory_bytes(field="MemTotal"):
    found = re.search(rf"^{field}:\s*(\d+) kB", _read("/proc/meminfo") or "", re.M)
    return int(found.group(1)) * 1024 if found else None


def clocks_mhz():
    """What each core runs at now, as the system says."""
    return [float(text) for text in re.findall(r"^cpu MHz\s*: ([\d.]+)$", _read("/proc/cpuinfo") or "", re.M)]


def load():
    """The load averages of 1, 5 and 15 minutes."""
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else []


_GPU_FIELDS = ["name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "utilization.gpu"]


def gpus():
    """One dict a GPU that nvidia-smi lists, its fields as it prints them."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    query = [tool, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split(", ") for line in listed.stdout.splitlines()] if listed.returncode == 0 else []
    return [dict(zip(_GPU_FIELDS, row)) for row in rows if len(row) == len(_GPU_FIELDS)]


def state():
    """What changes while a benchmark runs."""
    return {"load": load(), "clocks_mhz": clocks_mhz(), "gpus": gpus()}


def facts():
    """What does not change."""
    return {
        "processor": processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 1,
        "cores_allowed": affinity(),
        "caches": caches(),
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
        "kernel": f"{platform.release()} {platform.version()}",
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
