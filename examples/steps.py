"""A job of so many steps that can be interrupted: told to stop it saves where it is; its next attempt goes on there.

python3 examples/steps.py STEPS [SECONDS_PER_STEP]
"""

import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

steps, pace = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
# One file for all attempts of this job in this run: they have their parent in common.
saved = Path(tempfile.gettempdir()) / f"allmende-steps-{os.getppid()}-{os.environ['ALLMENDE_JOB']}"
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())

done = int(saved.read_text()) if saved.exists() else 0
print(f"attempt {os.environ['ALLMENDE_ATTEMPT']} goes on after step {done}", flush=True)
while done < steps:
    if stop.wait(pace):
        saved.write_text(str(done))
        print(f"told to stop; step {done} is saved", flush=True)
        sys.exit(0)
    done += 1
    print(f"step {done} of {steps}", flush=True)
saved.unlink(missing_ok=True)
