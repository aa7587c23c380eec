"""A mutation fuzzer of program text: the compiler gives a result or an IreesError, for any text."""
