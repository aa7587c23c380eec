"""Passes that bring what frontends emit into the dialects that the compiler works on."""
