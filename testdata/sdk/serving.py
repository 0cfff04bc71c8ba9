"""Starts sandboxes for the programs beside it."""
import contextlib
import os
import re
import subprocess
import sys


@contextlib.contextmanager
def sandbox(*flags, key=None):
    """A server of its own on a free port, with its state in memory; gives its address. TRAINER is the program."""
    env = {k: v for k, v in os.environ.items() if k != "TRAINER_SANDBOX_KEY"}
    if key:
        env["TRAINER_SANDBOX_KEY"] = key
    command = [os.environ["TRAINER"], "sandbox", "serve", "--addr", "127.0.0.1:0", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.match(r"sandbox at (\S+)", line):
                break
        else:
            sys.exit(f"{' '.join(command)} did not start: {''.join(said)}")
        yield found[1]
        assert process.poll() is None, "the sandbox has ended by itself"
    finally:
        process.terminate()
        process.stderr.close()
        process.wait()
