"""Transport of the protocol's messages: gRPC, TLS, certificates, signatures."""
