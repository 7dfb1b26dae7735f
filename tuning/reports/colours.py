"""The colours of every figure, chosen so that most colour-blind readers tell them apart too."""

# Okabe and Ito's colours, without black: it would vanish on a dark page.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# Readable on white and on black.
GREY = "#8C8C8C"
