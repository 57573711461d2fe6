# pip install of this tree into a fresh environment, without the network: what building needs is taken from the environment that runs
# this. Then the installed package is imported from elsewhere, runs, and has its types.
#   install.py ON|OFF      with or without LLVM
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRIAL = """
import pathlib, numpy as np, cosmati as co
folder = pathlib.Path(co.__file__).parent
assert folder.is_relative_to(PREFIX), folder
assert (folder / "py.typed").exists() and "def load" in (folder / "_programs.py").read_text()
assert "class Function" in (folder / "_core.pyi").read_text()
import importlib.metadata
assert importlib.metadata.version("cosmati") == co.__version__ == co.version
present = {device.name for device in co.devices() if device.present}
assert ("cpu" in present) == LLVM, present
x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
f = co.load("softmax", device="cpu" if LLVM else "sim")
assert all(f.check(x)) and abs(f(x).sum(1) - 1).max() < 1e-6
print("installed", co.version, "with", sorted(present))
"""


def main():
    llvm = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder).resolve() / "env"
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(prefix)], check=True)
        python = prefix / "bin" / "python"
        site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True)
        pathlib.Path(site.stdout.strip(), "build_tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
        environment = dict(os.environ)
        environment.pop("PYTHONPATH", None)
        environment |= {"CC": "cc", "CXX": "c++"}  # as CMake finds it, not as Python was built
        if shutil.which("ccache"):
            environment |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(ROOT)}
        command = [python, "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps", "--disable-pip-version-check"]
        command += ["--config-settings", f"cmake.define.COSMATI_LLVM={llvm}"]
        # As deep as the presets' folders, so that the compiler cache knows the same sources again.
        command += ["--config-settings", f"build-dir={ROOT}/build/wheel-llvm-{llvm.lower()}", str(ROOT)]
        subprocess.run(command, check=True, env=environment, cwd=folder)
        trial = f"PREFIX = {str(prefix)!r}\nLLVM = {llvm == 'ON'}\n{TRIAL}"
        subprocess.run([python, "-c", trial], check=True, env=environment, cwd=folder)


if __name__ == "__main__":
    main()
