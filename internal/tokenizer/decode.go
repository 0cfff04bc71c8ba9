package tokenizer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder is one step from the texts of tokens to text.
type decoder func(tokens []string) []string

// decode is the text of ids: those outside of the vocabulary are left out.
func (t *pipeline) decode(ids []int32) string {
	if t.decoders == nil {
		return decodeBytes(t, ids)
	}
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.shown) && t.known(id) {
			tokens = append(tokens, t.shown[id])
		}
	}
	for _, step := range t.decoders {
		tokens = step(tokens)
	}
	return strings.Join(tokens, "")
}

// decodeBytes is decode where the texts of tokens are bytes.
func decodeBytes(t *pipeline, ids []int32) string {
	var out []byte
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.shown) {
			out = append(out, t.shown[id]...)
		}
	}
	return lossy(out)
}

// spaceJoined is no decoder at all: tokens with a space between.
func spaceJoined(tokens []string) []string { return []string{strings.Join(tokens, " ")} }

func fused(tokens []string) []string { return []string{strings.Join(tokens, "")} }

func replacing(from, to string) decoder {
	return func(tokens []string) []string {
		for i, token := range tokens {
			tokens[i] = strings.ReplaceAll(token, from, to)
		}
		return tokens
	}
}

// stripping takes up to start of content off the front of each token, and up to stop off its end.
func stripping(content string, start, stop int) decoder {
	return func(tokens []string) []string {
		for i, token := range tokens {
			for n := start; n > 0 && strings.HasPrefix(token, content); n-- {
				token = token[len(content):]
			}
			for n := stop; n > 0 && strings.HasSuffix(token, content); n-- {
				token = token[:len(token)-len(content)]
			}
			tokens[i] = token
		}
		return tokens
	}
}

// metaspaced makes the mark into a space again, but for those of the first token where one was put there.
func metaspaced(s metaspace) decoder {
	return func(tokens []string) []string {
		for i, token := range tokens {
			with := " "
			if i == 0 && s.scheme != "never" {
				with = ""
			}
			tokens[i] = strings.ReplaceAll(token, s.mark, with)
		}
		return tokens
	}
}

// unfallen joins runs of byte tokens, <0x41>: into their text where they are UTF-8, else into one U+FFFD for each.
func unfallen(tokens []string) []string {
	var out []string
	var run []byte
	flush := func() {
		if utf8.Valid(run) && len(run) > 0 {
			out = append(out, string(run))
		} else if len(run) > 0 {
			out = append(out, strings.Repeat("\ufffd", len(run)))
		}
		run = run[:0]
	}
	for _, token := range tokens {
		if b, ok := fallbackByte(token); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// fallbackByte reads <0x41>.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// unmapped makes the characters of byte-level tokens into their bytes; a token that has others stays as it is.
func unmapped(tokens []string) []string {
	var out []byte
	for _, token := range tokens {
		if raw, ok := unmap(token); ok {
			token = raw
		}
		out = append(out, token...)
	}
	return []string{lossy(out)}
}

// lossy is b with one U+FFFD for each maximal part that is not UTF-8, as Rust and Python have it; Go would give one a byte.
func lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out bytes.Buffer
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			out.Write(b[:n])
			b = b[n:]
			continue
		}
		out.WriteString("\ufffd")
		b = b[illFormed(b):]
	}
	return out.String()
}

// illFormed is how many bytes of b, which does not start with a character, one U+FFFD stands for: as many as start one.
func illFormed(b []byte) int {
	need, low, high := 0, byte(0x80), byte(0xbf)
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
	case c >= 0xf0 && c <= 0xf4:
		need = 3
	}
	switch b[0] { // what would be too long, a surrogate, or past U+10FFFF ends after its first byte
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= low && b[n] <= high {
		n, low, high = n+1, 0x80, 0xbf
	}
	return n
}

// byteRunes is the characters that stand for bytes in byte-level vocabularies: printable ones for themselves, the rest from
// U+0100 on.
var byteRunes = func() (out [256]rune) {
	next := rune(256)
	for b := range out {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			out[b] = rune(b)
		default:
			out[b] = next
			next++
		}
	}
	return out
}()

// runeBytes is byteRunes the other way round, -1 for a character that stands for no byte.
var runeBytes = func() (out [0x144]int16) {
	for i := range out {
		out[i] = -1
	}
	for b, r := range byteRunes {
		out[r] = int16(b)
	}
	return out
}()

// unmap is the bytes of a byte-level token; false where it has a character that stands for none.
func unmap(token string) (string, bool) {
	raw := make([]byte, 0, len(token))
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return "", false
		}
		raw = append(raw, byte(runeBytes[r]))
	}
	return string(raw), true
}
