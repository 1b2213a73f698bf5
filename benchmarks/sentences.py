"""Sentences that differ in a word of one token, so that nothing that was computed fits the next one."""

SUBJECTS = ["cat", "dog", "man", "girl", "bird", "king", "child", "nurse", "judge", "clerk", "guard", "monk"]
