"""Which programs a command line ran, and how they ended by its exit code and by what it printed."""
