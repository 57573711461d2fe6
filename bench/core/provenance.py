# Where results come from: command, tree, environment, versions, and the bytes of every binary, before and after.
# SPDX-License-Identifier: Apache-2.0
"""Everything beside the machine that decides what was measured."""
import datetime
import hashlib
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Variables that change what libraries run, by prefix.
VARIABLES = (
    "BENCH_", "COSMATI_", "CUDA_", "DNNL_", "GLIBC_TUNABLES", "GOMP_", "GOTO_", "KMP_", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_", "MKL_", "NPY_",
    "NUMEXPR_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_", "ORT_", "PYTHON", "PYTORCH_", "TORCH", "TRITON_",
)  # fmt: skip


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def shown(path):
    """A path as results name it: from the root of the tree where it lies there."""
    path = pathlib.Path(path).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def sha256_of_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def sha256_of_text(text):
    return hashlib.sha256(text.encode()).hexdigest()


def git(root=ROOT):
    """revision; dirty: whether tracked files differ from it or untracked ones lie about; diff_sha256: of that difference. All None
    outside of a repository."""

    def ask(*arguments):
        answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True)
        return answer.stdout if answer.returncode == 0 else None

    try:
        revision, status = ask("rev-parse", "HEAD"), ask("status", "--porcelain")
    except OSError:
        revision = status = None
    if revision is None or status is None:
        return {"revision": None, "dirty": None, "diff_sha256": None}
    diff = ask("diff", "HEAD", "--binary") or b""
    return {
        "revision": revision.decode().strip(),
        "dirty": bool(status.strip()),
        "diff_sha256": hashlib.sha256(status + diff).hexdigest() if status.strip() else None,
    }


def environment():
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)}


def versions():
    import cosmati
    import numpy

    return {"python": platform.python_version(), "numpy": numpy.__version__, "cosmati": cosmati.__version__, "libc": " ".join(platform.libc_ver())}


def built(name):
    """The path of a file of the build that the package comes from, or None where it has none."""
    import cosmati._core

    path = pathlib.Path(cosmati._core.__file__).parent.parent.parent / name
    return path if path.is_file() else None


def our_binaries():
    """The extension that runs, and the tool of the same build where it lies beside it."""
    import cosmati._core

    return [cosmati._core.__file__] + [str(path) for path in [built("cosmati")] if path]


class Binaries:
    """Files whose hashes are taken when they are first named and again at the end."""

    def __init__(self):
        self.rows = {}

    def add(self, path):
        path = os.path.realpath(path)
        if path not in self.rows and os.path.isfile(path):
            self.rows[path] = {"file": shown(path), "bytes": os.path.getsize(path), "sha256": sha256_of_file(path), "sha256_after": None}

    def again(self):
        """Hashes all files once more; returns those that changed."""
        for path, row in self.rows.items():
            row["sha256_after"] = sha256_of_file(path) if os.path.isfile(path) else None
        return [row["file"] for row in self.rows.values() if row["sha256"] != row["sha256_after"]]


def command():
    return [pathlib.Path(sys.executable).name, shown(sys.argv[0]), *sys.argv[1:]]
