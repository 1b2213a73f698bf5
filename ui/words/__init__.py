"""Words: findings, the glossary, and texts of people shown as they are."""
