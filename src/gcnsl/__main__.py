"""The command ``gcnsl``, or ``python -m gcnsl``: Ctrl-C and SIGTERM end it with one line, from its first moment on."""

import _thread
import atexit
import math
import os
import signal
import sys
import threading
import time
from typing import Any

PATIENCE = 2.0
"""For so many seconds, further signals are ignored: whoever presses Ctrl-C twice does not want to stop its handling."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command line."""
    answered = -math.inf

    def interrupt(*_: Any) -> None:
        nonlocal answered
        if time.monotonic() - answered > PATIENCE:
            answered = time.monotonic()
            raise KeyboardInterrupt

    def interrupt_again(lost: Any) -> None:
        """Python only reports what is raised in a destructor or a callback, of which imports have many."""
        nonlocal answered
        if lost.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(lost)
            return
        answered = -math.inf
        again = threading.Timer(0.02, _thread.interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = interrupt_again
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        from gcnsl.cli import main as run

        run()
    except (KeyboardInterrupt, Exception):  # a library that was being imported may have made another error of it
        if answered == -math.inf:
            raise
        print("Interrupted: before anything was finished", file=sys.stderr)
        _exit(130)
    except SystemExit as end:
        if answered > -math.inf:
            _exit(end.code)
        _ignore_signals()
        raise


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _exit(code: Any) -> None:
    """End at once: after an interruption in code that is compiled from a string, Python would end with a signal."""
    _ignore_signals()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
