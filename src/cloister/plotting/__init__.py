"""What a picture shows, and drawing it."""
