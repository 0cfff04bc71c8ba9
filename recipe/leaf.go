package recipe

import (
	"fmt"
	"reflect"
	"strings"
)

// scalar decodes one word by its key's kind, and holds it to the key's bounds.
func (d *decoder) scalar(n *node, key string, k *Key, v reflect.Value) {
	if d.said[key] {
		return // a secret is no number either
	}
	var msg string
	switch k.Kind {
	case Text:
		var s string
		s, msg = textOf(n)
		v.SetString(s)
	case Boolean:
		var b bool
		b, msg = truth(n)
		v.SetBool(b)
	case Number:
		var f float64
		f, msg = number(n)
		v.SetFloat(f)
	case Integer:
		var i int64
		i, msg = whole(n)
		v.SetInt(i)
	case Duration:
		t, m := period(n)
		msg = m
		v.SetInt(int64(t))
	case Auto:
		if n.text == "auto" && n.shape == scalar {
			return
		}
		var i int64
		if i, msg = whole(n); msg != "" {
			msg = "must be auto or a whole number: " + msg
		}
		v.SetInt(i)
	case Held:
		var s Split
		s, msg = split(n)
		v.Set(reflect.ValueOf(s))
	}
	switch {
	case msg != "":
		d.add(n.pos, key, "%s", msg)
	case k.Kind == Text && k.Required && strings.TrimSpace(n.text) == "":
		d.add(n.pos, key, "must not be empty")
	default:
		d.bounds(n, key, k, v)
	}
}

// split reads a share of the rows or a number of them; msg says why there is none.
func split(n *node) (s Split, msg string) {
	if rows, msg := whole(n); msg == "" {
		if rows < 1 {
			return Split{}, fmt.Sprintf("must be a share between 0 and 1 or a number of rows from 1, got %d; null turns it off", rows)
		}
		return Split{Rows: int(rows)}, ""
	}
	share, msg := number(n)
	switch {
	case msg != "":
		return Split{}, "must be a share (0.02) or a number of rows (200): " + msg
	case share <= 0 || share >= 1:
		return Split{}, fmt.Sprintf("must be a share between 0 and 1 or a whole number of rows, got %s", n.text)
	}
	return Split{Share: share}, ""
}
