package tokenizer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// companions is what stands beside the vocabulary in a model's folder.
type companions struct {
	folder    string
	config    []byte
	templates map[string]string
	added     []added // of tokenizer_config.json, or of added_tokens.json, in order of id
	end       string  // eos_token, "" for none
	class     string  // tokenizer_class
	pattern   string  // pat_str
}

func readCompanions(folder string) (companions, error) {
	c := companions{folder: folder}
	if err := c.readConfig(); err != nil {
		return c, err
	}
	if len(c.added) == 0 {
		if err := c.readAddedTokens(); err != nil {
			return c, err
		}
	}
	return c, c.readTemplates()
}

// readConfig reads tokenizer_config.json and special_tokens_map.json.
func (c *companions) readConfig() error {
	known := map[string]bool{}
	var members []string
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		path := filepath.Join(c.folder, name)
		data, ok, err := optionalFile(path)
		if err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		s := &scanner{file: path, src: data}
		f, err := s.fields(strings.TrimSuffix(name, ".json"))
		if err == nil {
			err = s.finish()
		}
		if err == nil {
			err = c.readMembers(f)
		}
		if err != nil {
			return err
		}
		if c.config == nil {
			c.config = []byte(data)
		}
		for member, at := range f.members {
			if !known[member] && len(known) > 0 {
				value := &scanner{file: path, src: data, at: at}
				raw, err := value.raw()
				if err != nil {
					return err
				}
				members = append(members, strconv.Quote(member)+": "+raw)
			}
		}
		for member := range f.members {
			known[member] = true
		}
	}
	slices.Sort(members)
	c.merge(members)
	return nil
}

// merge puts members behind those of the configuration.
func (c *companions) merge(members []string) {
	if len(members) == 0 {
		return
	}
	body := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(c.config)), "}"))
	if !strings.HasSuffix(body, "{") {
		body += ","
	}
	c.config = []byte(body + strings.Join(members, ", ") + "}")
}

// readMembers reads what we use of a configuration; the first file to say something wins.
func (c *companions) readMembers(f fields) error {
	for _, member := range []struct {
		name string
		into *string
	}{{"tokenizer_class", &c.class}, {"pat_str", &c.pattern}} {
		if text, err := f.optional(member.name); err != nil {
			return err
		} else if *member.into == "" {
			*member.into = text
		}
	}
	if s, ok := f.value("eos_token"); ok && c.end == "" {
		text, err := s.named()
		if err != nil {
			return err
		}
		c.end = text
	}
	decoder, ok, err := f.sub("added_tokens_decoder")
	if err != nil || !ok {
		return err
	}
	for key := range decoder.members {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id > maxID {
			return decoder.refuse(key, "%q is no id from 0 to %d", key, maxID)
		}
		token, ok, err := decoder.sub(key)
		if err != nil || !ok {
			return cmp.Or(err, decoder.refuse(key, "null is no token"))
		}
		t, err := readAdded(token)
		if err != nil {
			return err
		}
		t.id = int32(id)
		c.added = append(c.added, t)
	}
	slices.SortFunc(c.added, func(a, b added) int { return int(a.id) - int(b.id) })
	return nil
}

// named takes a token: its text, or an object with its content.
func (s *scanner) named() (string, error) {
	if s.peek() != '{' {
		return s.text("a token's text")
	}
	f, err := s.fields("token")
	if err != nil {
		return "", err
	}
	return f.string("content")
}

// readAddedTokens reads added_tokens.json, which older files have: texts and their ids.
func (c *companions) readAddedTokens() error {
	path := filepath.Join(c.folder, "added_tokens.json")
	data, ok, err := optionalFile(path)
	if err != nil || !ok {
		return err
	}
	s := &scanner{file: path, src: data}
	err = s.object("added_tokens", func(token string) error {
		id, err := s.id()
		c.added = append(c.added, added{id: id, content: token, control: isControl(token, false)})
		return err
	})
	slices.SortFunc(c.added, func(a, b added) int { return int(a.id) - int(b.id) })
	return cmp.Or(err, s.finish())
}

// readTemplates reads the chat templates.
func (c *companions) readTemplates() error {
	text, ok, err := optionalFile(filepath.Join(c.folder, "chat_template.jinja"))
	if err != nil {
		return err
	}
	templates := map[string]string{}
	if ok {
		templates["default"] = text
	}
	more, err := filepath.Glob(filepath.Join(escapeGlob(c.folder), "additional_chat_templates", "*.jinja"))
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	for _, path := range more {
		if text, err = readFile(path); err != nil {
			return err
		}
		templates[strings.TrimSuffix(filepath.Base(path), ".jinja")] = text
	}
	if len(templates) > 0 {
		c.templates = templates
	}
	return nil
}

// finish tells t which token ends a text.
func (c *companions) finish(t *Tokenizer) error {
	if c.end == "" {
		return nil
	}
	id, ok := t.vocabulary.(*pipeline).tokenID(c.end)
	if !ok {
		return fmt.Errorf("%s: eos_token: %q is no token of the vocabulary", c.folder, c.end)
	}
	t.end = id
	return nil
}

// tokenID is the id of a token by its text: an added one's, else the first of the vocabulary.
func (t *pipeline) tokenID(text string) (int32, bool) {
	for _, a := range t.added {
		if a.content == text {
			return a.id, true
		}
	}
	i := slices.Index(t.shown, text)
	return int32(i), i >= 0
}
