"""From vectors to points: spaces, layouts, the attention map, reliability, maps of many texts."""
