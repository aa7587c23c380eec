"""What several passes of this folder share."""
