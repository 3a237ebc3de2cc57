"""Names, uids and descriptions do not change the results."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection([1, 2]).name("numbers").uid("numbers-uid")
            .map(lambda x: x + 1).name("plus one").uid("plus-uid").set_description("adds one")
            .filter(lambda x: True).name("all").set_uid_hash("0123456789abcdef0123456789abcdef").disable_chaining())
