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

// redaction is what is changed in a body before other code reads it.
type redaction struct {
	secrets  []secret    // the names of members whose values are emptied at any depth
	envelope []fieldPath // members of the envelope that are never emptied, whatever their names are
	absolute []fieldPath // the paths of URLs in which origins are replaced
	named    []string    // name patterns of members at any depth whose URLs are replaced too
	// path of the link to the next page, in which any origin is replaced, because readers follow it with their
	// credential
	next    []fieldPath
	origins *origins // the origins to replace, or nil if none is replaced
}

// clean returns body with the value of every secret member as "" (null and "" stay) and upstream's address in
// every absolute URL replaced by ours. It also returns the new position of the outermost value. body itself
// never changes; a body without secrets and URLs is returned unchanged.
func (s redaction) clean(body []byte, doc jsonspan.Value) ([]byte, jsonspan.Value) {
	if s.origins == nil || s.origins.publicURL == "" {
		s.absolute, s.named, s.next = nil, nil, nil
	}
	if len(s.secrets)+len(s.absolute)+len(s.named)+len(s.next) == 0 {
		return body, doc
	}
	if doc.Kind != jsonspan.Object { // rows without an envelope
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

// lengthsOf returns the lengths of the last names of some paths, as one bit each; 63 and above share a bit. A
// dot may be part of the last name.
func lengthsOf(paths []fieldPath) (lengths uint64) {
	for _, path := range paths {
		for last, more := string(path), true; more; _, last, more = strings.Cut(last, ".") {
			lengths |= 1 << min(len(last), 63)
		}
	}
	return lengths
}

// canEnd reports whether a path whose last names have such lengths may end in a raw name.
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
	// Most names are excluded by their length alone.
	secretLengths, nextLengths uint64

	body  []byte
	path  [jsonspan.MaxDepth][]byte // the names of the members being read, the outermost first
	depth int
	cuts  []replacement
	more  int // the number of bytes by which the body grows at most
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

// isAt reports whether the open members are one of some paths.
func (w *redactor) isAt(paths []fieldPath) bool {
	return slices.ContainsFunc(paths, func(f fieldPath) bool {
		before, ends := f.matchEnd(w.path[:w.depth])
		return ends && before == 0
	})
}

// isAbsolute reports whether the open members are the place of an absolute URL.
func (w *redactor) isAbsolute() bool {
	return w.isAt(w.redaction.absolute) ||
		w.depth > 0 && slices.ContainsFunc(w.redaction.named, func(pattern string) bool {
			return spec.MatchGlob(pattern,
				string(w.path[w.depth-1]))
		})
}

// isSecret reports whether the open members end in the name of a secret, and are not a member of the envelope
// that is no secret.
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

// hasSecretName reports whether a text that is no JSON document (XML, a form) seems to contain a secret field.
// Letter case and separators are ignored.
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

// removeNeedles removes the source's credential from a body, in its configured and its transmitted form, in
// case upstream repeats it.
func removeNeedles(body []byte, needles [][]byte) []byte {
	for _, n := range needles {
		if bytes.Contains(body, n) {
			body = bytes.ReplaceAll(body, n, nil)
		}
	}
	return body
}

// isDistinct reports whether text can be only inside a JSON string, so that removing it leaves a document
// valid. It must have 8 or more letters, digits, dashes and underscores, with a letter that no number has.
func isDistinct(text string) bool {
	word, letter := len(text) >= 8, false
	for _, r := range text {
		small := r | 0x20
		letter = letter || 'a' <= small && small <= 'z' && small != 'e' || r == '_'
		word = word && ('a' <= small && small <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	return word && letter
}
