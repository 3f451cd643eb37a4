"""The conformance kit: what plugin authors run on their own components."""
