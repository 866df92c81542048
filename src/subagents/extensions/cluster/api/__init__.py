"""The doors of a node of a cluster: any node takes any call, and the owner answers it."""
