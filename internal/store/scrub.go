// Scrubbing: what a dictionary is trained on holds nobody's data.

package store

import (
	"bytes"
	"math/rand/v2"

	"understudy"
	"understudy/kit/jsonspan"
)

// scrubber replaces what is sensitive by random text of the same form.
type scrubber struct {
	rng  *rand.Rand
	kind *understudy.Kind
	dst  []byte
	same map[understudy.AnyID]understudy.AnyID // an id that stands twice is replaced by one id
}

// scrub returns body with every value replaced that the spec gives a class,
// calls an id or a link, derives from such a field, or does not name; names the
// spec does not know are replaced as well. Ids and what follows a "?" are
// replaced inside the values that stay. A body that is no JSON object is
// replaced throughout.
func scrub(rng *rand.Rand, kind *understudy.Kind, body []byte) []byte {
	s := &scrubber{rng: rng, kind: kind, dst: make([]byte, 0, len(body)+16), same: map[understudy.AnyID]understudy.AnyID{}}
	v, err := jsonspan.Document(body)
	if err != nil {
		s.random(body)
		return s.dst
	}
	s.value(body, v, "", true)
	return s.dst
}

// value appends v; known says that the spec names it.
func (s *scrubber) value(data []byte, v jsonspan.Value, name string, known bool) {
	end := v.Start // everything before it is written
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.Members(data, v, func(raw []byte, m jsonspan.Value) bool {
			inner := jsonspan.Name(raw)
			if name != "" {
				inner = name + "." + inner
			}
			f := s.kind.Field(inner)
			s.name(data[end:m.Start], raw, f != nil)
			s.value(data, m, inner, f != nil)
			end = m.End
			return true
		})
	case jsonspan.Array:
		jsonspan.Elements(data, v, func(e jsonspan.Value) bool {
			s.dst = append(s.dst, data[end:e.Start]...)
			s.value(data, e, name, known)
			end = e.End
			return true
		})
	case jsonspan.String, jsonspan.Number:
		switch hide := !known || s.sensitive(name); {
		case hide && v.Kind == jsonspan.Number:
			s.number(v.Of(data))
		case hide:
			s.random(v.Of(data))
		default:
			s.keep(v.Of(data))
		}
		return
	}
	s.dst = append(s.dst, data[end:v.End]...)
}

// name appends what stands before a value: its name, and the punctuation.
func (s *scrubber) name(before, raw []byte, known bool) {
	if known {
		s.dst = append(s.dst, before...)
		return
	}
	at := bytes.Index(before, raw)
	s.dst = append(s.dst, before[:at]...)
	s.random(raw)
	s.dst = append(s.dst, before[at+len(raw):]...)
}

// sensitive reports whether the values of a field the spec names must not be
// seen.
func (s *scrubber) sensitive(name string) bool {
	f := s.kind.Field(name)
	if f == nil || f.Class != "" || f.Link != "" {
		return true
	}
	for _, id := range s.kind.ID {
		if id == name {
			return true
		}
	}
	return f.From != "" && f.From != name && s.sensitive(f.From)
}

// keep appends plain text; ids in it, and the values in a query, are random.
func (s *scrubber) keep(text []byte) {
	query, found := bytes.IndexByte(text, '?'), true
	if query < 0 {
		query, found = len(text), false
	}
	s.ids(text[:query])
	if !found {
		return
	}
	value := false
	for _, c := range text[query:] {
		switch c {
		case '=':
			value = true
		case '&', '"':
			value = false
		default:
			if value {
				c = s.like(c)
			}
		}
		s.dst = append(s.dst, c)
	}
}

// ids appends text with its ids and its long numbers made random.
func (s *scrubber) ids(text []byte) {
	const long = 6
	for i := 0; i < len(text); {
		if n := s.id(text[i:]); n > 0 {
			i += n
			continue
		}
		n := 0
		for i+n < len(text) && text[i+n] >= '0' && text[i+n] <= '9' {
			n++
		}
		if n >= long {
			s.random(text[i : i+n])
		} else {
			n = max(n, 1)
			s.dst = append(s.dst, text[i:i+n]...)
		}
		i += n
	}
}

// id appends a random id when text begins with one, and says how long it is.
// Only the prefix stays, which says what sort of id it is.
func (s *scrubber) id(text []byte) int {
	const length = understudy.AnyIDText
	if len(text) < length {
		return 0
	}
	id, ok := understudy.ParseAnyID(string(text[:length]))
	if !ok {
		return 0
	}
	other, known := s.same[id]
	if !known {
		other.Prefix = id.Prefix
		for i := range other.Raw {
			other.Raw[i] = byte(s.rng.Uint32())
		}
		s.same[id] = other
	}
	s.dst, _ = other.AppendText(s.dst)
	return length
}

// random appends text of the same form: letters for letters, digits for
// digits; punctuation and escapes stay, other scripts become letters.
func (s *scrubber) random(text []byte) {
	for i := 0; i < len(text); i++ {
		if n := s.id(text[i:]); n > 0 {
			i += n - 1
			continue
		}
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			s.dst = append(s.dst, c)
			i++
			if c = text[i]; c != 'u' {
				s.dst = append(s.dst, c)
				continue
			}
			s.dst = append(s.dst, c)
			for n := 0; n < 4 && i+1 < len(text); n++ {
				i++
				s.dst = append(s.dst, "0123456789abcdef"[s.rng.IntN(16)])
			}
			continue
		}
		s.dst = append(s.dst, s.like(c))
	}
}

// number appends a number with other digits.
func (s *scrubber) number(text []byte) {
	for _, c := range text {
		if c >= '0' && c <= '9' {
			c = s.like(c)
		}
		s.dst = append(s.dst, c)
	}
}

// like is a random character of c's sort; no digit is 0, which a number may
// not begin with.
func (s *scrubber) like(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return '1' + byte(s.rng.IntN(9))
	case c >= 'A' && c <= 'Z':
		return 'A' + byte(s.rng.IntN(26))
	case c >= 'a' && c <= 'z', c >= 0x80:
		return 'a' + byte(s.rng.IntN(26))
	}
	return c
}

// scrubOutside is scrub for what a page holds outside its records, which is no
// document: every string before a colon is a name and stays, one that begins
// with a slash or with http is a link and keeps its path, any other is random.
func scrubOutside(rng *rand.Rand, outside []byte) []byte {
	s := &scrubber{rng: rng, dst: make([]byte, 0, len(outside)), same: map[understudy.AnyID]understudy.AnyID{}}
	for i := 0; i < len(outside); {
		if outside[i] != '"' {
			from := i
			for i < len(outside) && outside[i] != '"' {
				i++
			}
			s.ids(outside[from:i])
			continue
		}
		end := i + 1
		for end < len(outside) && outside[end] != '"' {
			if outside[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(outside))
		text := outside[i:end]
		rest := bytes.TrimLeft(outside[end:], " \t\r\n")
		switch {
		case len(rest) > 0 && rest[0] == ':':
			s.dst = append(s.dst, text...)
		case bytes.HasPrefix(text, []byte(`"/`)), bytes.HasPrefix(text, []byte(`"http`)):
			s.keep(text)
		default:
			s.random(text)
		}
		i = end
	}
	return s.dst
}
