"""Reading the files that people write: bounded, and in words where they are wrong."""
