"""How long a kernel takes on a device, without running it.

Read `work.py` first: all that is known of a kernel. It is counted from IR (`counting.py`: loads
and stores in `accesses.py`, factors of products in `factors.py`), for many programs at once
(`programs.py`), of a launch or before there is one (`calls.py`). `roofline.py` makes seconds of
it, with as many programs at once as fit (`fitting.py`). `predicting.py` is what others ask: what
do the launches of a program take, which of these schedules is the fastest?
"""
