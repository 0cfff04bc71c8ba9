package dataset

// twin is what two equal rows have in common: an index holds no bytes, so rows are taken for equal by length and checksum.
type twin struct {
	length int32
	sum    uint32
}

// leaked counts the rows of train that are, byte for byte, also held out. The draw is of rows, so copies of a row can fall
// on both sides; nothing is moved for it, as which rows train has to follow from the seed alone.
func leaked(train, held *Set) int {
	if held == nil {
		return 0
	}
	out := make(map[twin]bool, held.Len())
	for _, e := range held.entries {
		out[twin{e.length, e.sum}] = true
	}
	n := 0
	for _, e := range train.entries {
		if out[twin{e.length, e.sum}] {
			n++
		}
	}
	return n
}
