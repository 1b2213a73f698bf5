"""Words: findings, the glossary, and visitors' texts shown literally."""
