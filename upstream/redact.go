// Redaction: emptying secrets before other code reads a body.

package upstream

import (
	"bytes"
	"slices"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// secret is the name of a secret field.
type secret = fieldPath

// allSecrets is every field of the spec that is a secret anywhere.
func allSecrets(s *spec.Spec) []secret {
	var out []secret
	add := func(fields []*spec.Field) {
		for _, f := range fields {
			if name := secret(f.Name); f.Class == spec.ClassSecret && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	add(s.Paging.Envelope)
	for _, p := range s.Pagings {
		add(p.Envelope)
	}
	for _, k := range s.Kinds {
		add(k.Fields)
	}
	return out
}

// secretsFor is what to empty in pages of a kind: all secrets of the spec, of whatever
// kind, without the names that the kind declares as no secret.
func secretsFor(s *spec.Spec, k *spec.Kind) []secret {
	return slices.DeleteFunc(allSecrets(s), func(name secret) bool {
		return slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Class != spec.ClassSecret && f.Name == string(name) })
	})
}

// besideIn returns where an envelope declares members that are no secrets, whatever their
// names, in answers whose records are under key. Without a key there is no envelope.
func besideIn(key string, envelope []*spec.Field) (out []fieldPath) {
	if key == "" {
		return nil
	}
	for _, f := range envelope {
		if f.Class != spec.ClassSecret && !strings.HasPrefix(f.Name+".", key+".") {
			out = append(out, fieldPath(f.Name))
		}
	}
	return out
}

// redaction is what is changed in a body before anything else sees it.
type redaction struct {
	secrets  []secret    // emptied, at any depth
	beside   []fieldPath // of the envelope, and no secrets whatever their names
	absolute []fieldPath // URLs in which origins are replaced
	named    []string    // the same, by patterns of names, at any depth
	next     []fieldPath // the link to the next page, in which any origin is: readers follow it with their credential
	origins  *origins    // nil when nothing is
}

// clean returns body with the value of every secret member as "" (null and "" stay) and
// upstream's address in every absolute URL replaced by ours. The outermost value moves
// along. body itself never changes; a body with neither is returned unchanged.
func (s redaction) clean(body []byte, doc jsonspan.Value) ([]byte, jsonspan.Value) {
	if s.origins == nil || s.origins.ours == "" {
		s.absolute, s.named, s.next = nil, nil, nil
	}
	if len(s.secrets)+len(s.absolute)+len(s.named)+len(s.next) == 0 {
		return body, doc
	}
	if doc.Kind != jsonspan.Object { // rows without an envelope
		s.beside = nil
	}
	w := redactor{redaction: s, body: body}
	w.secretLengths, w.nextLengths = lengthsOf(s.secrets), lengthsOf(s.next)
	c := jsonspan.NewCursor(body, doc)
	w.walk(&c)
	if len(w.cuts) == 0 {
		return body, doc
	}
	out := make([]byte, 0, len(body)+w.more)
	last := 0
	for _, v := range w.cuts {
		out = append(append(out, body[last:v.start]...), v.text...)
		last = v.end
	}
	doc.End = len(out) + doc.End - last
	return append(out, body[last:]...), doc
}

// lengthsOf returns how long the last names of some paths are, a bit each; 63 and above share one. A dot may be
// part of the last name.
func lengthsOf(paths []fieldPath) (lengths uint64) {
	for _, path := range paths {
		for last, more := string(path), true; more; _, last, more = strings.Cut(last, ".") {
			lengths |= 1 << min(len(last), 63)
		}
	}
	return lengths
}

// mayEnd reports whether a path whose last names have such lengths may end in a raw name.
func mayEnd(lengths uint64, name []byte) bool {
	return lengths>>min(len(name), 63)&1 != 0 || bytes.IndexByte(name, '\\') >= 0
}

// replacement is a part of a body and what stands there instead.
type replacement struct {
	start, end int
	text       []byte
}

var noText = []byte(`""`)

type redactor struct {
	redaction redaction
	// Nearly every name is another than the last of a path already by its length.
	secretLengths, nextLengths uint64

	body  []byte
	path  [jsonspan.MaxDepth][]byte // names of the open members, outermost first
	depth int
	cuts  []replacement
	more  int // how much longer the body becomes, at most
}

func (w *redactor) cut(start, end int, text []byte) {
	w.cuts = append(w.cuts, replacement{start, end, text})
	w.more += len(text)
}

// walk goes over the value c stands before. An array's elements stand under
// the array's own name.
func (w *redactor) walk(c *jsonspan.Cursor) {
	switch c.Kind() {
	case jsonspan.Array:
		c.Enter()
		for c.Next() {
			w.walk(c)
		}
	case jsonspan.Object:
		c.Enter()
		for c.Next() {
			w.path[w.depth] = c.Name()
			w.depth++
			if w.isSecret() {
				if v := c.Skip(); filled(v) {
					w.cut(v.Start, v.End, noText)
				}
			} else {
				w.walk(c)
			}
			w.depth--
		}
	default:
		v := c.Skip()
		if v.Kind != jsonspan.String || len(w.redaction.absolute)+len(w.redaction.named)+len(w.redaction.next) == 0 {
			return
		}
		next := w.depth > 0 && mayEnd(w.nextLengths, w.path[w.depth-1]) && w.isAt(w.redaction.next)
		if n := w.redaction.origins.away(w.body[v.Start+1 : v.End-1]); n > 0 && (next || w.isAbsolute()) {
			w.cut(v.Start+1, v.Start+1+n, w.redaction.origins.text)
		} else if next {
			if link := w.redaction.origins.home(jsonspan.Text(w.body, v)); link != "" {
				w.cut(v.Start, v.End, jsonText(link))
			}
		}
	}
}

// isAt reports whether the open members are one of some paths.
func (w *redactor) isAt(paths []fieldPath) bool {
	return slices.ContainsFunc(paths, func(f fieldPath) bool {
		before, ends := f.ends(w.path[:w.depth])
		return ends && before == 0
	})
}

// isAbsolute reports whether the open members are where an absolute URL stands.
func (w *redactor) isAbsolute() bool {
	return w.isAt(w.redaction.absolute) ||
		w.depth > 0 && slices.ContainsFunc(w.redaction.named, func(pattern string) bool {
			return spec.MatchGlob(pattern,
				string(w.path[w.depth-1]))
		})
}

// isSecret reports whether the open members end in the name of a secret, and are no
// member of the envelope that is none.
func (w *redactor) isSecret() bool {
	raw := w.path[w.depth-1]
	if len(raw) == 0 || !mayEnd(w.secretLengths, raw) {
		return false
	}
	escaped, last := bytes.IndexByte(raw, '\\') >= 0, raw[len(raw)-1]
	return slices.ContainsFunc(w.redaction.secrets, func(name secret) bool {
		if !escaped && name[len(name)-1] != last {
			return false
		}
		_, ends := name.ends(w.path[:w.depth])
		return ends
	}) && !w.isAt(w.redaction.beside)
}

// namesSecret reports whether text that is no JSON document (XML, a form)
// seems to hold a secret field; letter case and separators do not count.
func namesSecret(text []byte, secrets []secret) bool {
	if len(secrets) == 0 {
		return false
	}
	text = bytes.ToLower(text)
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("_"), nil), []byte("-"), nil)
	return slices.ContainsFunc(secrets, func(name secret) bool {
		last := string(name[strings.LastIndexByte(string(name), '.')+1:])
		return bytes.Contains(text, []byte(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(last))))
	})
}

// takeOut removes the source's credential from a body, as configured and as it goes
// over the wire, in case upstream echoes it.
func takeOut(body []byte, needles [][]byte) []byte {
	for _, n := range needles {
		if bytes.Contains(body, n) {
			body = bytes.ReplaceAll(body, n, nil)
		}
	}
	return body
}

// distinct reports whether text can stand only inside a JSON string, so that
// taking it out leaves a document whole: 8 or more
// letters, digits, dashes and underscores, with a letter no number holds.
func distinct(text string) bool {
	word, letter := len(text) >= 8, false
	for _, r := range text {
		small := r | 0x20
		letter = letter || 'a' <= small && small <= 'z' && small != 'e' || r == '_'
		word = word && ('a' <= small && small <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	return word && letter
}
