"""Audit that every entrant passes through: which faults were looked for, which were found, and by what command.

It tests behaviour and reads no code: it finds mistakes, not malice, and replaces no proof.
"""
