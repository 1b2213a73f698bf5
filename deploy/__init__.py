"""What runs attnviz for many people: processes behind a proxy, containers, a cluster."""
