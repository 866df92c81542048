"""Workers that are driven in lines, whatever they speak."""
