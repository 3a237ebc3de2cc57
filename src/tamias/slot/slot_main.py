"""Entry point of a slot process. Apart from `slot.py`, because the user's own classes live in `__main__` here."""

from tamias.slot.server import main

if __name__ == "__main__":
    main()
