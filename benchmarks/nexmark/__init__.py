"""Nexmark: queries over the people, auctions and bids of an auction house, in rows and in columns of Ekorn."""
