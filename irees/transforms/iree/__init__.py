"""
Passes of IREE that the pipeline does not run.

They work on IREE's and MLIR's IR, under IREE's names, for people who use them in pipelines of their
own and for the conformance tests on IREE's lit files. No pass outside of this folder imports them.
"""
