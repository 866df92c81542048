"""What extensions need that follow every commit and notify others of it."""
