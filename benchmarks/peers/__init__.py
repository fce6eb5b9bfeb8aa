"""Other packages, each in an environment of its own, timed by a process that runs there.

For a package NAME there are `NAME.txt` (all its pins) and `run_NAME.py` (dashes as underscores), which imports
nothing of this project and has

    PACKAGE    the name of the distribution
    TASKS      name -> prepare(count), which returns what is timed: any work at all
    ORACLES    name -> make(), which returns a `client` and a `server` of a frequency oracle on 1024 answers

`worker.py` says what a client and a server are; it loads the script, does what it is asked and answers in JSON.
"""
