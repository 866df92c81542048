"""Finding a node for an attempt: by looking into the database, or through Temporal."""
