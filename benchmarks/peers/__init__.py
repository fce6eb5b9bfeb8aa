"""Other packages, each in an environment of its own, timed by a script that runs there.

For a package NAME there are `NAME.txt` (its pins) and `run_NAME.py` (dashes as underscores), which may import
nothing of this project. The script is called as

    python run_NAME.py WHAT COUNT

does WHAT on COUNT values, and prints {"version": "...", "seconds": ...} for all of them together.
"""
