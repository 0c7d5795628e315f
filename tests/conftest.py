"""Tests start processes and signal them, so signals must do what they usually do, also under nohup or with `&`."""

from __future__ import annotations

import signal

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # children would inherit it, and no test could interrupt them
        signal.signal(number, usual)
