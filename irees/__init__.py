"""irees: an ML compiler that you can read."""
