"""Reports: they subscribe to a search and write down what it found."""
