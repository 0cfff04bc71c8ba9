package dataset

import "bytes"

// media are what multimodal rows write into their text where something stands that is in a column beside it.
var media = []struct {
	mark    []byte
	columns []string
}{
	{[]byte("<image>"), []string{"images", "image"}},
	{[]byte("<video>"), []string{"videos", "video"}},
	{[]byte("<audio>"), []string{"audios", "audio"}},
}

// unseenMedia is the fault of a row whose text speaks of what is in a column that nothing reads: it would train on an answer
// about a picture that the model is not shown.
func unseenMedia(row value) *fault {
	for _, m := range media {
		if !bytes.Contains(row, m.mark) {
			continue
		}
		for _, name := range m.columns {
			if v := row.member(name); v != nil && !v.isBlank() {
				return bad(name, "only text can be rendered, and the text of the row has %s where this belongs; leave the row out, or take %s out of its text", m.mark, m.mark)
			}
		}
	}
	return nil
}
