// Package layout is the map of the rooms: which package may import which, and which of them may use a module from
// outside. It holds no code that runs; its test reads the imports of the whole module and refuses an arrow that is not on
// the map. Arrows point towards the mathematics, and input and output stay at the rim: a loss that could reach the
// network, or a client that knew the sandbox, would be found here.
package layout
