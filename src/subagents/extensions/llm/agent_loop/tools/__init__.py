"""What the model of the loop can do: files, search, a shell, and the daemon's tools."""
