"""Entry point of a slot process. It holds nothing else, because the user's own classes are put into `__main__` here."""

from ekorn.slot.process import main

if __name__ == "__main__":
    main()
