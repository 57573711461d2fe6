# The command line of benchmarks: ./dev bench, or python -m bench from the root of the tree with `cosmati` on PYTHONPATH.
# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark, or lists them. Exit codes: 0 done, 1 a check failed or a variant raised an error, 2 the input is wrong, 130 interrupted."""
import argparse
import ast
import dataclasses
import fnmatch
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import sys

from bench.core.declare import Benchmark, Speed, name_of, problems

HERE = pathlib.Path(__file__).resolve().parent
DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
NOT_BENCHMARKS = {"core", "peers"}
# What tells libraries how many threads to use; most read it when they are first imported.
THREAD_VARIABLES = ("COSMATI_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class BadInput(Exception):
    """What the user must change; one sentence."""


def available():
    """{name: file} of the benchmarks of this folder."""
    files = {path.stem: path for path in HERE.glob("*.py") if not path.stem.startswith("_")}
    files.update({path.parent.name: path for path in HERE.glob("*/__init__.py") if path.parent.name not in NOT_BENCHMARKS})
    return dict(sorted(files.items()))


def title(path):
    """The first line of a file's docstring; nothing of it is run."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.splitlines()[0] if text else path.stem


def find(name):
    files = available()
    if name in files:
        return name, files[name]
    path = pathlib.Path(name)
    if path.suffix == ".py" and path.is_file():
        return path.stem, path.resolve()
    raise BadInput(f"there is no benchmark {name}; there are {', '.join(files)}, and the paths of Python files")


def declared(name, path, seed=None):
    """The `benchmark` of a file, of this seed where it depends on one. Raises BadInput for one that declares none or a wrong one."""
    spec = importlib.util.spec_from_file_location(f"bench_declared_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise BadInput(f"{path} cannot be loaded: {type(problem).__name__}: {problem}") from problem
    benchmark = getattr(module, "benchmark", None)
    if callable(benchmark):
        benchmark = benchmark(seed or 0)
    if not isinstance(benchmark, Benchmark):
        raise BadInput(f"{path} declares no `benchmark = Benchmark(...)`")
    for problem in problems(benchmark):
        raise BadInput(f"{path}: {problem}")
    return benchmark


def only(cases, bars, pattern):
    """The bars that a regular expression finds, by what they say or their case, and the cases that it finds or that those bars need."""
    try:
        found = re.compile(pattern).search
    except re.error as problem:
        raise BadInput(f"--only {pattern} is no regular expression: {problem}") from None
    kept = [bar for bar in bars if found(bar.what) or (isinstance(bar, Speed) and found(bar.case))]
    needed = {getattr(bar, "case", None) for bar in kept}
    cases = [case for case in cases if case.name in needed or found(case.name)]
    if not kept and not cases:
        raise BadInput(f"--only {pattern} finds no bar and no case")
    return cases, kept


def is_there(bar, cases, variants):
    """Whether what a bar compares is still there after the choices of the command line."""
    for case in cases:
        if case.name == bar.case:
            return {bar.variant, *bar.against} <= {name_of(variant) for variant in case.variants or variants}
    return False


def chosen(benchmark, options):
    """The benchmark with what the command line says instead."""
    changes = {
        name: value
        for name, value in {
            "rounds": options.rounds, "samples": options.samples, "seed": options.seed, "minutes": options.minutes,
            "target_s": None if options.target_ms is None else options.target_ms / 1000,
            "cold": None if options.memory is None else options.memory == "cold",
            "metrics": tuple(options.metric) if options.metric else None,
        }.items()
        if value is not None
    }  # fmt: skip
    settings = dataclasses.replace(benchmark.settings, **changes)
    cases, variants, bars = list(benchmark.cases), list(benchmark.variants), list(benchmark.bars)
    if options.only:
        cases, bars = only(cases, bars, options.only)
    if options.case:
        cases = [case for case in cases if any(fnmatch.fnmatch(case.name, pattern) for pattern in options.case)]
        if not cases:
            raise BadInput(f"no case matches {' or '.join(options.case)}; there are {', '.join(case.name for case in benchmark.cases)}")
    if options.variant:
        for name in options.variant:
            if name not in benchmark.all_names():
                raise BadInput(f"there is no variant {name}; there are {', '.join(benchmark.all_names())}")
        variants = [variant for variant in variants if name_of(variant) in options.variant]
        cases = [
            case if case.variants is None or callable(case.variants)
            else dataclasses.replace(case, variants=[variant for variant in case.variants if name_of(variant) in options.variant])
            for case in cases
        ]  # fmt: skip
    bars = [bar for bar in bars if not isinstance(bar, Speed) or is_there(bar, cases, variants)]
    baseline = options.baseline or benchmark.baseline
    if options.baseline is None and options.variant and baseline not in options.variant:
        baseline = None
    benchmark = dataclasses.replace(benchmark, cases=cases, variants=variants, settings=settings, baseline=baseline, bars=bars)
    for problem in problems(benchmark):
        raise BadInput(problem)
    return benchmark


def peers_of(benchmark):
    """The peers that a benchmark names. Raises BadInput for one that there is not."""
    from bench.core.peers import load_peers

    peers = load_peers()
    variants = [*benchmark.variants, *(variant for case in benchmark.cases for variant in benchmark.variants_of(case))]
    names = list(dict.fromkeys(name for name in variants if isinstance(name, str)))
    for name in names:
        if name not in peers:
            raise BadInput(f"there is no peer {name}; the peers are {', '.join(sorted(peers))}")
    return [peers[name] for name in names]


def installed(requirement):
    try:
        importlib.metadata.version(re.split("[^A-Za-z0-9_.-]", requirement)[0])
        return True
    except importlib.metadata.PackageNotFoundError:
        return False


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Times variants side by side in balanced rounds, after checking all they compute.", allow_abbrev=False,
        epilog="Without NAME the benchmarks are listed. Exit codes: 0 done, 1 a check failed, 2 the input is wrong, 130 interrupted.",
    )  # fmt: skip
    parser.add_argument("name", nargs="?", metavar="NAME", help="a benchmark of bench/, or a Python file that declares one")
    parser.add_argument("--out", metavar="FOLDER", default=str(HERE / "results"), help="where the results folder is made (bench/results)")
    parser.add_argument("--rounds", type=int, metavar="N", help="at least so many rounds")
    parser.add_argument("--samples", type=int, metavar="N", help="samples of a visit")
    parser.add_argument("--target-ms", type=float, metavar="MS", help="how long a sample takes at least")
    parser.add_argument("--metric", action="append", metavar="M", help="e2e_batch, e2e_single, gpu_batch, gpu_single; may be repeated")
    parser.add_argument("--cold", dest="memory", action="store_const", const="cold", help="go through more memory than the last-level cache")
    parser.add_argument("--warm", dest="memory", action="store_const", const="warm", help="repeat on the same arrays")
    parser.add_argument("--only", metavar="REGEX", help="only the bars and cases that it finds")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long it may take: fewer rounds, then fewer cases")
    parser.add_argument("--case", action="append", metavar="GLOB", help="only these cases; may be repeated")
    parser.add_argument("--variant", action="append", metavar="NAME", help="only these variants; may be repeated")
    parser.add_argument("--baseline", metavar="NAME", help="the variant that the others are held against")
    parser.add_argument("--threads", type=int, metavar="N", help="how many threads each variant may use (all cores)")
    parser.add_argument("--seed", type=int, metavar="N", help="of inputs and orders")
    parser.add_argument("--requirements", action="store_true", help="print what pip must install for the peers, and do nothing else")
    parser.add_argument("--targets", action="store_true", help="print what CMake must build, and do nothing else")
    return parser.parse_args(arguments)


def list_benchmarks():
    files = available()
    width = max(map(len, files), default=0)
    for name, path in files.items():
        print(f"{name:<{width}}  {title(path)}")
    print("\n./dev bench NAME [OPTION...] runs one; ./dev bench --help lists the options.")


def main(arguments=None):
    options = parse(arguments)
    try:
        if options.name is None:
            list_benchmarks()
            return DONE
        if options.threads is not None:
            if not 1 <= options.threads <= 1024:
                raise BadInput(f"--threads is {options.threads}; a number from 1 to 1024 is needed")
            os.environ.update({name: str(options.threads) for name in THREAD_VARIABLES})
        if options.seed is not None and options.seed < 0:
            raise BadInput(f"--seed is {options.seed}; a number from 0 is needed")
        name, path = find(options.name)
        benchmark = chosen(declared(name, path, options.seed), options)
        peers = peers_of(benchmark)
        if options.requirements:
            print("\n".join(sorted({*benchmark.requires, *(line for peer in peers for line in peer.requires)})))
            return DONE
        if options.targets:
            print("\n".join(benchmark.targets))
            return DONE
        for peer in (peer for peer in peers if peer.name in benchmark.required):
            for line in peer.requires:
                if not installed(line):
                    raise BadInput(f"{line} is not installed, and {peer.name} needs it: a bar on the best peer says nothing without it")
        return run(name, path, benchmark, options)
    except BadInput as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return WRONG_INPUT


def run(name, path, benchmark, options):
    try:
        import cosmati  # noqa: F401
    except ImportError as problem:
        raise BadInput(f"the package cosmati cannot be imported ({problem}); ./dev bench builds it") from None
    from bench.core import machine, provenance, results
    from bench.core.run import Run

    about = {"name": name, "title": title(path), "file": provenance.shown(path), "sha256": provenance.sha256_of_file(path)}
    try:
        before = provenance.git()  # the folder of the results is no change of the tree
        folder = results.make_folder(options.out, name)
        this = Run(benchmark, about, folder, options.threads or machine.affinity())
        this.document["provenance"]["git"] = before
        status = this.execute()
    except results.BadResults as problem:
        raise BadInput(str(problem)) from problem
    if this.document["bars"]:
        print("\n".join(results.bar_table(this.document["bars"])), results.bar_counts(this.document["bars"]) + ".", sep="\n\n")
    else:
        print((folder / "table.md").read_text())
    print(f"results: {provenance.shown(folder)}")
    if status == "complete" and this.document["reason"]:
        print(f"bench: {this.document['reason']}", file=sys.stderr)
    if status == "failed":
        print(f"bench: failed: {this.document['reason']}", file=sys.stderr)
    if status == "incomplete":
        print("bench: interrupted; what was measured is kept, marked incomplete", file=sys.stderr)
    return {"complete": DONE, "failed": FAILED, "incomplete": INTERRUPTED}[status]


if __name__ == "__main__":
    sys.exit(main())
