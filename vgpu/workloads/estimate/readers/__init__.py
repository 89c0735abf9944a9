"""Files of models. They are hostile input: bounded in size, count and depth; an error names the field."""
