"""What the backends share: how kernel IR is spelled in C, and the compilers that are run."""
