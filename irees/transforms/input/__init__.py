"""Passes that convert frontend IR to the dialects that the compiler works on."""
