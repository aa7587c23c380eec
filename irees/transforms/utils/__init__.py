"""What several passes need: shapes of values, the loops of structured ops, IR building."""
