"""the pair benchmark inside a Python program, for profilers that only start those: pair_from_python.py pair.so ARGUMENTS..."""
import ctypes
import sys

words = [word.encode() for word in sys.argv[1:]]
library = ctypes.CDLL(sys.argv[1])
library.pair_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))
