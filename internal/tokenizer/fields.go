package tokenizer

import "strings"

// fields is an object of the file whose members are looked at by name; what nobody asks for is left alone, as in the reference.
type fields struct {
	*scanner
	path    string // where it stands in the file, as pre_tokenizer.pretokenizers[1]
	start   int
	members map[string]int // where the value of each starts
}

// fields takes an object.
func (s *scanner) fields(path string) (fields, error) {
	s.peek()
	f := fields{scanner: s, path: path, start: s.at, members: map[string]int{}}
	return f, s.object(path, func(key string) error {
		s.peek()
		f.members[key] = s.at
		return s.skip(0)
	})
}

// value is a scanner at the value of a member; false where there is none or it is null.
func (f fields) value(name string) (*scanner, bool) {
	at, ok := f.members[name]
	if !ok || f.null(at) {
		return nil, false
	}
	return &scanner{file: f.file, src: f.src, at: at}, true
}

func (f fields) null(at int) bool { return len(f.src)-at >= 4 && f.src[at:at+4] == "null" }

// refuse is an error about the value of a member, or about the object where it has no such member.
func (f fields) refuse(name, format string, args ...any) error {
	at, ok := f.members[name]
	if !ok {
		at = f.start
	}
	return f.fail(at, f.path+"."+name+": "+format, args...)
}

// string is the text of a member that has to be there.
func (f fields) string(name string) (string, error) {
	s, ok := f.value(name)
	if !ok {
		return "", f.refuse(name, "missing; a text should be here")
	}
	text, err := s.text("the text " + f.path + "." + name)
	return strings.Clone(text), err // a part of the file would keep all of it
}

// optional is the text of a member, "" where there is none.
func (f fields) optional(name string) (string, error) {
	if _, ok := f.value(name); !ok {
		return "", nil
	}
	return f.string(name)
}

// flag is the truth of a member, or what it is by default.
func (f fields) flag(name string, usual bool) (bool, error) {
	s, ok := f.value(name)
	if !ok {
		return usual, nil
	}
	var yes bool
	err := s.decode(f.path+"."+name, &yes)
	return yes, err
}

// number is the count of a member, or what it is by default.
func (f fields) number(name string, usual int) (int, error) {
	s, ok := f.value(name)
	if !ok {
		return usual, nil
	}
	n, err := s.id()
	return int(n), err
}

// each calls do with the objects of a list.
func (f fields) each(name string, do func(fields) error) error {
	s, ok := f.value(name)
	if !ok {
		return f.refuse(name, "missing; a list should be here")
	}
	return s.array("the list "+f.path+"."+name, func(i int) error {
		element, err := s.fields(f.path + "." + name + "[" + itoa(i) + "]")
		if err != nil {
			return err
		}
		return do(element)
	})
}

// sub is the object of a member; false where there is none.
func (f fields) sub(name string) (fields, bool, error) {
	s, ok := f.value(name)
	if !ok {
		return fields{}, false, nil
	}
	sub, err := s.fields(f.path + "." + name)
	return sub, true, err
}
