package parquet

import (
	"errors"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// errTorn is a row whose columns do not belong together.
var errTorn = errors.New("damaged: the columns of a row do not fit together")

// node is one field of the schema, made to write its values. The levels of a value say how deep it is there (definition)
// and at which depth a list goes on with it (repetition): Melnik et al. 2010, Dremel.
type node struct {
	name     string
	optional bool
	repeated bool
	is       kind
	fields   []*node // of a group and of a map, whose are key and value; of a list its one element
	leaves   int     // columns below
	scalar   scalar  // of a leaf
	nulls    bool    // a group that writes members that are null
}

type kind int

const (
	leaf kind = iota
	group
	list
	mapping
)

// maxDepth bounds the nesting of a schema.
const maxDepth = 100

func newNode(c *pq.Column) (*node, error) { return newNodeAt(c, 0) }

func newNodeAt(c *pq.Column, depth int) (*node, error) {
	n := &node{name: c.Name(), optional: c.Optional(), repeated: c.Repeated()}
	if depth > maxDepth {
		return nil, errors.New("its schema is nested more than 100 deep")
	}
	if c.Leaf() {
		n.leaves, n.scalar = 1, scalarOf(c.Type())
		return n, nil
	}
	n.is = group
	for _, sub := range c.Columns() {
		child, err := newNodeAt(sub, depth+1)
		if err != nil {
			return nil, err
		}
		n.fields, n.leaves = append(n.fields, child), n.leaves+child.leaves
	}
	n.annotate(c.Type())
	return n, nil
}

// annotate makes a group a list or a map where the schema says so, and where it has the shape of one.
func (n *node) annotate(t pq.Type) {
	l := t.LogicalType()
	if l == nil || len(n.fields) != 1 || !n.fields[0].repeated {
		return
	}
	only := n.fields[0]
	switch l.Value.(type) {
	case *format.ListType:
		n.is = list
		if only.wraps(n.name) {
			only = only.fields[0]
		} else {
			only.repeated = false
		}
		n.fields = []*node{only}
	case *format.MapType:
		if len(only.fields) == 2 {
			n.is, n.fields = mapping, only.fields
		}
	}
}

// wraps tells whether the repeated field of a list has the element inside it, by the rules that the format gives for
// files of older writers, whose repeated field is the element itself.
func (n *node) wraps(list string) bool {
	return n.is == group && len(n.fields) == 1 && !n.fields[0].repeated && n.name != "array" && n.name != list+"_tuple"
}

// rooted makes the node that of whole rows.
func (n *node) rooted() { n.optional, n.repeated, n.nulls, n.is = false, false, true, group }

// append writes what stands in columns, [leaves], of which one value at least is the node's; def and rep are the levels
// of what is around it.
func (n *node) append(dst []byte, columns [][]pq.Value, def, rep int) ([]byte, error) {
	if n.repeated {
		return n.appendList(dst, columns, def, rep, func(dst []byte, columns [][]pq.Value, def, rep int) ([]byte, error) {
			return n.appendOne(dst, columns, def, rep)
		})
	}
	if n.optional {
		if def++; !defined(columns, def) {
			return append(dst, "null"...), nil
		}
	}
	return n.appendOne(dst, columns, def, rep)
}

func (n *node) appendOne(dst []byte, columns [][]pq.Value, def, rep int) ([]byte, error) {
	switch n.is {
	case list:
		return n.appendList(dst, columns, def, rep, n.fields[0].append)
	case mapping:
		return n.appendMap(dst, columns, def, rep)
	case group:
		return n.appendGroup(dst, columns, def, rep)
	}
	if len(columns) != 1 || len(columns[0]) != 1 {
		return dst, errTorn
	}
	if columns[0][0].IsNull() {
		return append(dst, "null"...), nil
	}
	return n.scalar(dst, columns[0][0])
}

// defined tells whether the first value of the columns is there to this depth. A group without columns always is.
func defined(columns [][]pq.Value, def int) bool {
	return len(columns) == 0 || (len(columns[0]) > 0 && columns[0][0].DefinitionLevel() >= def)
}

func (n *node) appendGroup(dst []byte, columns [][]pq.Value, def, rep int) (_ []byte, err error) {
	dst = append(dst, '{')
	first := true
	for _, f := range n.fields {
		if len(columns) < f.leaves {
			return dst, errTorn
		}
		own := columns[:f.leaves]
		columns = columns[f.leaves:]
		if f.optional && !n.nulls && !defined(own, def+1) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendText(dst, f.name), ':')
		if dst, err = f.append(dst, own, def, rep); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

type appender func(dst []byte, columns [][]pq.Value, def, rep int) ([]byte, error)

// appendList writes the elements of a repeated field.
func (n *node) appendList(dst []byte, columns [][]pq.Value, def, rep int, element appender) ([]byte, error) {
	dst = append(dst, '[')
	dst, err := eachElement(dst, columns, def+1, rep+1, func(dst []byte, columns [][]pq.Value) ([]byte, error) {
		return element(dst, columns, def+1, rep+1)
	})
	return append(dst, ']'), err
}

// appendMap writes an object. Keys that are no text become that.
func (n *node) appendMap(dst []byte, columns [][]pq.Value, def, rep int) ([]byte, error) {
	key, value := n.fields[0], n.fields[1]
	dst = append(dst, '{')
	dst, err := eachElement(dst, columns, def+1, rep+1, func(dst []byte, columns [][]pq.Value) ([]byte, error) {
		if len(columns) != key.leaves+value.leaves {
			return dst, errTorn
		}
		at := len(dst)
		dst, err := key.append(dst, columns[:key.leaves], def+1, rep+1)
		if err != nil {
			return dst, err
		}
		if dst[at] != '"' {
			dst = appendText(dst[:at], string(dst[at:]))
		}
		return value.append(append(dst, ':'), columns[key.leaves:], def+1, rep+1)
	})
	return append(dst, '}'), err
}

// eachElement cuts columns into elements: each begins where the values do not go on with a deeper list. def and rep are
// the levels of an element.
func eachElement(dst []byte, columns [][]pq.Value, def, rep int, write func([]byte, [][]pq.Value) ([]byte, error)) (_ []byte, err error) {
	if !defined(columns, def) || len(columns) == 0 {
		return dst, nil
	}
	one := make([][]pq.Value, len(columns))
	rest := append([][]pq.Value(nil), columns...)
	for first := true; len(rest[0]) > 0; first = false {
		for i, values := range rest {
			if len(values) == 0 {
				return dst, errTorn
			}
			end := 1
			for end < len(values) && values[end].RepetitionLevel() > rep {
				end++
			}
			one[i], rest[i] = values[:end], values[end:]
		}
		if !first {
			dst = append(dst, ',')
		}
		if dst, err = write(dst, one); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
