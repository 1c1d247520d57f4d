"""What a release is made of: licences, notices, hashes, manifests, and a list of parts for programs (SBOM)."""
