"""A controller's state directory, copied and put back from the copy, as an operator would do it. The controller does not run.

The outputs in it stay where they are: agents and ranks write there all the time.
"""

import os
import shutil


def copy_of(state, copy):
    shutil.copytree(state, copy, ignore=shutil.ignore_patterns("outputs"))


def put_back(copy, state):
    for entry in list(os.scandir(state)):
        if entry.name == "outputs":
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    shutil.copytree(copy, state, dirs_exist_ok=True)
