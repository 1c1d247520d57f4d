"""``nodeproof assets image``: images for a deployment, out of base images that were approved, and their manifests."""
