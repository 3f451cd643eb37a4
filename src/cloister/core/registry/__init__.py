"""Components: how they are declared, found, composed and described."""
