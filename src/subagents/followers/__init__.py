"""Who hears of every commit and tells somebody outside; each is an extension's."""
