"""What carries the protocol's messages: gRPC, TLS, certificates, signatures."""
