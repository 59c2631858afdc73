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

// allSecrets returns every field of the spec that is a secret in any kind.
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

// secretsFor returns the fields to empty in pages of a kind: all secrets of the spec except the names that the
// kind declares as no secret.
func secretsFor(s *spec.Spec, k *spec.Kind) []secret {
	return slices.DeleteFunc(allSecrets(s), func(name secret) bool {
		return slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Class != spec.ClassSecret && f.Name == string(name) })
	})
}

// envelopePaths returns the paths of the envelope's members that are no secrets, whatever their names, in
// answers whose records are under key. Without a key there is no envelope.
func envelopePaths(key string, envelope []*spec.Field) (out []fieldPath) {
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

// redaction describes how a body is changed before other code reads it.
type redaction struct {
	secrets  []secret    // the names of members whose values are emptied at any depth
	envelope []fieldPath // paths of members of the envelope that are never emptied, whatever their names
	absolute []fieldPath // the paths of URLs in which origins are replaced
	named    []string    // patterns of the names of members whose URLs are also replaced, at any depth
	// The path of the link to the next page. Any origin in it is replaced, because readers follow the link with their
	// credential.
	next    []fieldPath
	origins *origins // the origins to replace in URLs, or nil if none is replaced
}

// clean returns body with the value of every secret member replaced by "" (null and "" stay). In every absolute URL it
// replaces the upstream's address by this server's. It also returns the new position of the outermost value. body
// itself never changes. A body without secrets and URLs is returned unchanged.
func (s redaction) clean(body []byte, doc jsonspan.Value) ([]byte, jsonspan.Value) {
	if s.origins == nil || s.origins.publicURL == "" {
		s.absolute, s.named, s.next = nil, nil, nil
	}
	if len(s.secrets)+len(s.absolute)+len(s.named)+len(s.next) == 0 {
		return body, doc
	}
	if doc.Kind != jsonspan.Object { // the body is an array of rows, so there is no envelope
		s.envelope = nil
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

// lengthsOf returns a bit set of the lengths of the last names of some paths. Lengths of 63 and above share a bit. A
// dot may be part of the last name.
func lengthsOf(paths []fieldPath) (lengths uint64) {
	for _, path := range paths {
		for last, more := string(path), true; more; _, last, more = strings.Cut(last, ".") {
			lengths |= 1 << min(len(last), 63)
		}
	}
	return lengths
}

// canEnd reports whether one of the paths from which lengths was computed may end in a raw name.
func canEnd(lengths uint64, name []byte) bool {
	return lengths>>min(len(name), 63)&1 != 0 || bytes.IndexByte(name, '\\') >= 0
}

// replacement is a range of a body and its new text.
type replacement struct {
	start, end int
	text       []byte
}

var emptyString = []byte(`""`)

// redactor finds the parts of a body that are replaced.
type redactor struct {
	redaction redaction
	// The lengths of the names, by which most names are excluded quickly.
	secretLengths, nextLengths uint64

	body  []byte
	path  [jsonspan.MaxDepth][]byte // the names of the members that contain the current value, the outermost first
	depth int
	cuts  []replacement
	more  int // the maximum number of bytes by which the body grows
}

func (w *redactor) cut(start, end int, text []byte) {
	w.cuts = append(w.cuts, replacement{start, end, text})
	w.more += len(text)
}

// walk reads the value at the cursor. The elements of an array have the path of the array.
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
				if v := c.Skip(); isFilled(v) {
					w.cut(v.Start, v.End, emptyString)
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
		next := w.depth > 0 && canEnd(w.nextLengths, w.path[w.depth-1]) && w.isAt(w.redaction.next)
		if n := w.redaction.origins.matchLength(w.body[v.Start+1 : v.End-1]); n > 0 && (next || w.isAbsolute()) {
			w.cut(v.Start+1, v.Start+1+n, w.redaction.origins.publicURLText)
		} else if next {
			if link := w.redaction.origins.homeLink(jsonspan.Text(w.body, v)); link != "" {
				w.cut(v.Start, v.End, jsonText(link))
			}
		}
	}
}

// isAt reports whether the path of the current value is one of some paths.
func (w *redactor) isAt(paths []fieldPath) bool {
	return slices.ContainsFunc(paths, func(f fieldPath) bool {
		before, ends := f.matchEnd(w.path[:w.depth])
		return ends && before == 0
	})
}

// isAbsolute reports whether the current value may be an absolute URL.
func (w *redactor) isAbsolute() bool {
	return w.isAt(w.redaction.absolute) ||
		w.depth > 0 && slices.ContainsFunc(w.redaction.named, func(pattern string) bool {
			return spec.MatchGlob(pattern,
				string(w.path[w.depth-1]))
		})
}

// isSecret reports whether the path of the current value ends in the name of a secret. A member of the envelope that is
// declared as no secret is excluded.
func (w *redactor) isSecret() bool {
	raw := w.path[w.depth-1]
	if len(raw) == 0 || !canEnd(w.secretLengths, raw) {
		return false
	}
	escaped, last := bytes.IndexByte(raw, '\\') >= 0, raw[len(raw)-1]
	return slices.ContainsFunc(w.redaction.secrets, func(name secret) bool {
		if !escaped && name[len(name)-1] != last {
			return false
		}
		_, ends := name.matchEnd(w.path[:w.depth])
		return ends
	}) && !w.isAt(w.redaction.envelope)
}

// hasSecretName reports whether a text that is not JSON (XML, a form) seems to contain a secret field. It ignores
// letter case and separators.
func hasSecretName(text []byte, secrets []secret) bool {
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

// removeNeedles removes the source's credential from a body, in its configured and its encoded form, in case the
// upstream returns it.
func removeNeedles(body []byte, needles [][]byte) []byte {
	for _, n := range needles {
		if bytes.Contains(body, n) {
			body = bytes.ReplaceAll(body, n, nil)
		}
	}
	return body
}

// isDistinct reports whether text can occur only inside a JSON string, so that the document stays valid when text is
// removed. It must have 8 or more letters, digits, dashes and underscores, and a letter that no number contains.
func isDistinct(text string) bool {
	word, letter := len(text) >= 8, false
	for _, r := range text {
		small := r | 0x20
		letter = letter || 'a' <= small && small <= 'z' && small != 'e' || r == '_'
		word = word && ('a' <= small && small <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	return word && letter
}
