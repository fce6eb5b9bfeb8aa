"""Worker processes that survive the death of one of them.

Kernels that work in the cache do not get faster in threads, but do in processes. A task is a pure function of its
arguments, so what was lost with a killed worker is simply done again; a task that kills its workers again and again is
given up with a sentence that says so.

Start      fork where it is safe (Linux, no thread but those of a progress bar, which a worker never touches), which
           takes milliseconds; else a fresh interpreter, and always where the caller knows of hidden threads
End        a worker ends with its parent, even by kill -9; an interruption ends workers at once
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from deniable.errors import DeniableError, InternalError, NumberError

Task = TypeVar("Task")
Found = TypeVar("Found")

MOST_DEATHS = 3


class WorkerError(DeniableError, RuntimeError):
    """Workers that die on the same work, however often it is started anew."""


def worker_count(wanted: int | None) -> int:
    """As many as asked for; all cores that this process may use if nobody asked."""
    if wanted is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise NumberError(f"the number of workers is a positive whole number, not {wanted!r}")
    return wanted


def run_all(
    function: Callable[[Any, Task], Found],
    shared: Any,
    tasks: Iterable[Task],
    workers: int,
    again: Callable[[], None] | None = None,
    fork: bool = True,
) -> Generator[tuple[Task, Found]]:
    """function(shared, task) for every task, in the order in which they are done.

    `again` is called before work is repeated; with it everything is repeated, without it only what is not done yet.
    """
    waiting = list(tasks)
    everything = list(waiting)
    for _ in range(MOST_DEATHS):
        done: list[int] = []
        try:
            for index, found in _run(function, shared, waiting, workers, fork):
                done.append(index)
                yield waiting[index], found
            return
        except BrokenProcessPool:
            finished = set(done)
            waiting = [task for index, task in enumerate(waiting) if index not in finished]
            if again is not None:
                again()
                waiting = everything
    raise WorkerError(
        f"{MOST_DEATHS} times a worker process was killed, perhaps for want of memory: try fewer workers, "
        "or look in the system's log"
    )


def _run(
    function: Callable[[Any, Task], Found], shared: Any, tasks: list[Task], workers: int, fork: bool
) -> Iterator[tuple[int, Found]]:
    context = multiprocessing.get_context(_start_method(fork))
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(workers, len(tasks)) or 1, context, _begin, (function, shared))
    # A few tasks ahead keep every worker busy, and no more results than that wait for their turn.
    ahead = 2 * workers + 2
    order = iter(enumerate(tasks))
    pending: dict[Future[Found], int] = {}

    def fill() -> None:
        for index, task in order:
            with warnings.catch_warnings():
                # Newer Pythons warn of any fork beside another thread; pools of native libraries handle it.
                warnings.simplefilter("ignore", DeprecationWarning)
                pending[pool.submit(_do, task)] = index
            if len(pending) >= ahead:
                return

    try:
        fill()
        while pending:
            finished, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                index = pending.pop(future)
                yield index, future.result()
            fill()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        # Nobody waits for what they are doing.
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_method(fork: bool = True) -> str:
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if fork and sys.platform == "linux" and all(type(thread).__module__.startswith("rich.") for thread in others):
        return "fork"
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


_work: tuple[Callable[[Any, Any], Any], Any] | None = None


def _begin(function: Callable[[Any, Any], Any], shared: Any) -> None:
    global _work
    # The parent hears of an interruption and ends its workers; a handler that was forked along would not let it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    _work = (function, shared)


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _do(task: Any) -> Any:
    if _work is None:
        raise InternalError("a worker was not told what to do")
    function, shared = _work
    return function(shared, task)
