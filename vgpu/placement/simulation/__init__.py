"""Where pods would be placed: `simulate` asks, and the others are what it places, and what is said of the answer."""
