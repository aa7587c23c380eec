"""
IREE's passes that the irees pipeline does not run.

They work on IREE's and MLIR's IR and keep IREE's names, for custom pipelines and for the
conformance tests on IREE's lit files. No pass outside this folder imports them.
"""
