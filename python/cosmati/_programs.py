# Where programs come from: a spec, a text, or a Python function.
# SPDX-License-Identifier: Apache-2.0
"""Ways to programs."""
import inspect
import os
from typing import Any, Callable, Dict, Mapping, Optional, Union, overload

from cosmati import _core
from cosmati._core import Function
from cosmati._errors import Error


_private: Any = _core  # its functions with an underscore, which the stub leaves out


def _options(
    device: Optional[str],
    threads: int,
    knobs: Optional[Mapping[str, Any]],
    plan: Optional[str],
    cache: Union[str, "os.PathLike[str]", None],
    jit: bool,
) -> Dict[str, Any]:
    if knobs is not None and not isinstance(knobs, Mapping):
        what = f"knobs= maps names to values, and an object of type {type(knobs).__name__} is given"
        hint = 'pass a dict, as in knobs={"lanes": 8}'
        raise Error(f"bad_argument: {what}. Hint: {hint}", "bad_argument", what, hint)
    return {
        "device": device or "",
        "threads": threads,
        "knobs": {str(name): str(value) for name, value in (knobs or {}).items()},
        "plan": plan,
        "cache": None if cache is None else os.fspath(cache),
        "jit": jit,
    }


def _refuse_parameters(function: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not known of this callable
        return
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed:
        what = f"the function that describes a program has no parameters, and this one has {', '.join(needed)}"
        hint = f'declare arrays and scalars inside, as in {needed[0]} = cosmati.input("{needed[0]}", cosmati.f32, [row])'
        raise Error(f"bad_argument: {what}. Hint: {hint}", "bad_argument", what, hint)


def load(
    spec: Any,
    *,
    device: Optional[str] = None,
    threads: int = 0,
    knobs: Optional[Mapping[str, Any]] = None,
    plan: Optional[str] = None,
    cache: Union[str, "os.PathLike[str]", None] = None,
    jit: bool = True,
) -> Function:
    """The program of a file, of FILE:NAME, or a shipped one by its name (see shipped_programs()).

    device: "cpu", "sim" or "oracle"; else COSMATI_DEVICE, else the CPU. threads: of the CPU; 0 is all cores. knobs: exact settings of
    the plan. plan: JSON of a plan to replay. cache: folder of compiled kernels, "" for none; else COSMATI_CACHE_DIR, else the user's cache
    folder. jit: False raises Error(not_compiled) where a kernel is neither in memory nor in the cache.

    Raises Error with code bad_file, unknown_name, syntax and line and column; knobs and plans are checked on the first call.
    """
    function: Function = _private._load(os.fspath(spec), _options(device, threads, knobs, plan, cache, jit))
    return function


@overload
def program(source: Callable[[], Any]) -> Function: ...
@overload
def program(
    source: str,
    *,
    name: Optional[str] = None,
    device: Optional[str] = None,
    threads: int = 0,
    knobs: Optional[Mapping[str, Any]] = None,
    plan: Optional[str] = None,
    cache: Union[str, "os.PathLike[str]", None] = None,
    jit: bool = True,
) -> Function: ...
@overload
def program(
    *,
    name: Optional[str] = None,
    device: Optional[str] = None,
    threads: int = 0,
    knobs: Optional[Mapping[str, Any]] = None,
    plan: Optional[str] = None,
    cache: Union[str, "os.PathLike[str]", None] = None,
    jit: bool = True,
) -> Callable[[Callable[[], Any]], Function]: ...
def program(
    source: Union[str, Callable[[], Any], None] = None,
    *,
    name: Optional[str] = None,
    device: Optional[str] = None,
    threads: int = 0,
    knobs: Optional[Mapping[str, Any]] = None,
    plan: Optional[str] = None,
    cache: Union[str, "os.PathLike[str]", None] = None,
    jit: bool = True,
) -> Any:
    """A program from a text, or, as a decorator, from a Python function of no arguments that describes it.

    A text with several programs needs `name`. A function is run when the program is first used, once for every binding of its dtypes, and
    mistakes are raised then, at their lines. Options as in load().

    Raises Error with code syntax, unknown_name.
    """
    told: Dict[str, Any] = {"device": device, "threads": threads, "knobs": knobs, "plan": plan, "cache": cache, "jit": jit}
    if source is None:
        return lambda function: program(function, name=name, **told)
    if callable(source):
        _refuse_parameters(source)
        return _private._capture(name or source.__name__, source, _options(**told))
    if not isinstance(source, str):
        raise Error(f"a program is a text or a function, not an object of type {type(source).__name__}", "bad_argument")
    try:
        source.encode()
    except UnicodeEncodeError as problem:
        what = f"the text is no UTF-8: {problem.reason} at character {problem.start}"
        raise Error(f"syntax: {what}", "syntax", what) from None
    found = _private._parse(source, "<text>", _options(**told))
    names = [function.name for function in found]
    if name is None and len(found) == 1:
        return found[0]
    if name in names:
        return found[names.index(name)]
    what = f"the text holds no program `{name}`" if name is not None else f"the text holds {len(found)} programs"
    raise Error(f"unknown_name: {what}. Hint: name one: {', '.join(names)}", "unknown_name", what, "name one: " + ", ".join(names))
