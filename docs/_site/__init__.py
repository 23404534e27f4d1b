"""What the documentation site derives from the package and the bundles, so that it is written once."""
