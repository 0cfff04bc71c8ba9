package dataset

import "trainer/internal/chat"

// teacherPrompt is what a teacher is given where the student has the prompt of a row: the teacher_prompt of the row, or the
// prompt, either behind teacher.system. nil: the same as the student. A teacher_prompt of messages may have a system message of
// its own, which stays alone; beside one in the prompt, teacher.system would be another.
func (s *source) teacherPrompt(row value, t *chat.Template) ([]int32, *fault) {
	field, c := "prompt", s.columns["teacher_prompt"]
	_, mapped := s.section.Fields["teacher_prompt"]
	switch v := c.raw(row); {
	case v == nil && mapped && c.whole():
		return nil, missing(row, c.String())
	case v != nil && !v.isNull(), mapped && !c.whole():
		field = "teacher_prompt"
	case s.teacher.System == nil:
		return nil, nil
	}
	system := s.teacher.System
	if system != nil && s.columns[field].holdsList(row) {
		ms, f := messages(s.columns[field].raw(row), s.columns[field].String())
		if f != nil {
			return nil, f
		}
		for i, m := range ms {
			if m.Role != "system" && m.Role != "developer" {
				continue
			}
			if field == "prompt" {
				return nil, bad(element(s.columns[field].String(), i, ""), "a %s message, and teacher.system would be a second one for the teacher; give the row a teacher_prompt", m.Role)
			}
			system = nil
		}
	}
	return s.promptIDs(row, field, system, t)
}

// promptIDs renders the prompt that stands under a field, behind a system text, up to where the completion starts. nil: there is
// no such text but that of the chat section.
func (s *source) promptIDs(row value, field string, system *string, t *chat.Template) ([]int32, *fault) {
	text, ms, f := prompt(s, row, field, t)
	if f != nil {
		return nil, f
	}
	var ids []int32
	var err error
	before := 0
	switch {
	case ms != nil:
		if system != nil && t.HasRoles() {
			ms, before = append([]chat.Message{{Role: "system", Content: *system, Given: true}}, ms...), 1
		}
		conv, f := s.conversation(row, ms)
		if f != nil {
			return nil, f
		}
		ids, err = t.Prompt(conv)
	case system != nil:
		ids, err = t.PromptText(*system + text)
	default:
		ids, err = t.PromptText(text)
	}
	if err == nil {
		return ids, nil
	}
	key := s.columns[field].String()
	return nil, fromChat(err, func(i int, part string) string {
		switch {
		case i >= 0 && i < before:
			return "teacher.system"
		case text != "" && i >= 0:
			return key
		}
		return s.place(key, max(i-before, -1), part)
	})
}
