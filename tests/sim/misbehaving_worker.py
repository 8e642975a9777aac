"""Takes the place of the conformance suite's worker and does what the name of the operator says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from tools.conformance.records import Outcome, Result


def main() -> None:
    """Answer, hang, or die."""
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print('{"at": "sample 3, backward"}', flush=True)
        if job["operator"] == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if job["operator"] == "hangs":
            time.sleep(60)
        if job["operator"] == "exits":
            sys.exit("no reason at all")
        result = Result(job["operator"], job["dtype"], Outcome.PASS, samples=1)
        print(json.dumps({"result": result.as_json()}), flush=True)


if __name__ == "__main__":
    main()
