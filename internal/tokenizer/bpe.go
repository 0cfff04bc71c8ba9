package tokenizer

import (
	"math/bits"
	"unicode/utf8"
)

// bpe is byte-pair encoding: a vocabulary and which pairs of its entries join, in which order. It is read-only.
type bpe struct {
	texts        []string // by id: what the token stands for, in bytes where byteLevel; "" for an id of the added tokens alone
	widths       []int32  // by id: how many bytes of a word it stands for
	ids          map[string]int32
	symbols      [256]int32 // by byte: its token (byteLevel) or its fallback, -1 for none
	merges       mergeTable
	byteLevel    bool
	byteFallback bool
	ignoreMerges bool
	fuseUnknown  bool
	unknown      int32         // -1 for none
	inside       map[rune]bool // characters that stand before ▁ in a token; nil where words may not be cut before ▁
}

// mergeTable maps two ids to the rank of their merge and the id it makes, by open addressing.
type mergeTable struct {
	keys, values []uint64 // key+1, 0 for an empty slot; rank<<32 | id
	shift        int
}

const noMerge = ^uint64(0)

func newMergeTable(n int) mergeTable {
	size := bits.Len(uint(2*n + 15))
	return mergeTable{keys: make([]uint64, 1<<size), values: make([]uint64, 1<<size), shift: 64 - size}
}

// slot is where the key is, or would be.
func (m *mergeTable) slot(key uint64) uint64 {
	at := key * 0x9e3779b97f4a7c15 >> m.shift
	for m.keys[at] != 0 && m.keys[at] != key {
		at = (at + 1) & uint64(len(m.keys)-1)
	}
	return at
}

func mergeKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) + 1 }

// put holds the newest of two merges of one pair, as the reference does.
func (m *mergeTable) put(a, b int32, rank int, id int32) {
	at := m.slot(mergeKey(a, b))
	m.keys[at], m.values[at] = mergeKey(a, b), uint64(rank)<<32|uint64(uint32(id))
}

// get is rank<<32 | id, or noMerge: the smaller, the earlier.
func (m *mergeTable) get(a, b int32) uint64 {
	key := mergeKey(a, b)
	at := key * 0x9e3779b97f4a7c15 >> m.shift
	for {
		switch m.keys[at] {
		case key:
			return m.values[at]
		case 0:
			return noMerge
		}
		at = (at + 1) & uint64(len(m.keys)-1)
	}
}

// crossing is the characters that stand before ▁ in one of texts; ▁ itself always does.
func crossing(texts []string) map[rune]bool {
	inside := map[rune]bool{'▁': true}
	for _, text := range texts {
		for i := indexFrom(text, "▁", 0); i >= 0; i = indexFrom(text, "▁", i+len("▁")) {
			if r, n := utf8.DecodeLastRuneInString(text[:i]); n > 0 {
				inside[r] = true
			}
		}
	}
	return inside
}
