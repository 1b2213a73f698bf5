"""Subjects of one token, in which sentences differ, so that nothing computed for one sentence fits the next."""

SUBJECTS = ["cat", "dog", "man", "girl", "bird", "king", "child", "nurse", "judge", "clerk", "guard", "monk"]
