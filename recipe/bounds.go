package recipe

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"

	"trainer/internal/diag"
)

// bounds holds a value to its key's validate tag.
func (d *decoder) bounds(n *node, key string, k *Key, v reflect.Value) {
	if k.Check == "" {
		return
	}
	var broken validator.ValidationErrors
	if err := d.check.Var(v.Interface(), k.Check); !errors.As(err, &broken) {
		return
	}
	b := broken[0]
	if m := element.FindStringSubmatch(b.Namespace()); m != nil { // of a list: the rule is about one entry
		if i, err := strconv.Atoi(m[1]); err == nil && i < len(n.items) {
			n, key = n.items[i], join(key, m[1])
		}
	}
	d.add(n.pos, key, "%s", breach(n, b.Tag(), b.Param()))
}

var element = regexp.MustCompile(`^\[(\d+)\]`)

// breach says a rule of the validator in words.
func breach(n *node, rule, param string) string {
	if n.shape == list && rule == "min" {
		least, _ := strconv.Atoi(param) // the tag is ours
		return fmt.Sprintf("must have at least %s, has %d", count(least, "entry", "entries"), len(n.items))
	}
	if limit, err := time.ParseDuration(param); err == nil {
		if _, err := strconv.ParseFloat(param, 64); err != nil {
			param = periodText(limit)
		}
	}
	switch rule {
	case "gte", "min":
		return fmt.Sprintf("must be at least %s, got %s", param, n.show())
	case "gt":
		return fmt.Sprintf("must be above %s, got %s", param, n.show())
	case "lte", "max":
		return fmt.Sprintf("must be at most %s, got %s", param, n.show())
	case "lt":
		return fmt.Sprintf("must be below %s, got %s", param, n.show())
	case "eq":
		return fmt.Sprintf("must be %s, got %s", param, n.show())
	case "ne":
		return fmt.Sprintf("must not be %s", param)
	case "oneof":
		names := strings.Fields(param)
		return fmt.Sprintf("%q is not one of %s%s", n.text, strings.Join(names, ", "), diag.DidYouMean(n.text, names))
	case "len", "hexadecimal":
		return fmt.Sprintf("must be 64 hexadecimal digits, got %s", n.show())
	}
	return fmt.Sprintf("must hold %s %s, got %s", rule, param, n.show())
}
