"""Binary form of reports and messages."""
