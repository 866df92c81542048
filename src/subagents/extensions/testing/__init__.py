"""What tests of others' runtimes, couriers and stores need."""
