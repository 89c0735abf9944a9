"""What lists consist of: a module for each kind of row, which declares every field of it once, as a `Column`.

Rows, `?fields=`, filters, sorting and the OpenAPI document are derived from these declarations. A module belongs here
if it declares the fields of a row.
"""
