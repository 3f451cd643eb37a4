"""Rows that are not secret: public sets by name, and generated ones."""
