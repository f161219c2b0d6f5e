"""`python -m thalweg` is the program."""

import os
import sys

from ._program import find_program

program = find_program()
os.execv(program, [program, *sys.argv[1:]])
