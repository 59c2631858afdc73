// Template: a path with variables in braces, such as /v1/Calls/{Sid}.json.

package spec

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy"
)

// Template is a path of a spec, with at most one variable per segment. Compile parses the paths of lists,
// instances and media. The zero value has no segments.
type Template struct {
	text     string
	segments []Segment
}

// Segment is one path segment of a template: the literal Head, or a variable between a literal head and tail
// ("{Sid}.json").
type Segment struct{ Head, Name, Tail string }

// ParseTemplate parses a path with variables.
func ParseTemplate(path string) (Template, error) {
	t := Template{text: path}
	if !strings.HasPrefix(path, "/") {
		return t, fmt.Errorf("path %q does not begin with a slash", path)
	}
	for text := range strings.SplitSeq(path[1:], "/") {
		seg, err := parseSegment(text)
		if err != nil {
			return t, err
		}
		t.segments = append(t.segments, seg)
	}
	return t, nil
}

func parseSegment(text string) (Segment, error) {
	head, rest, ok := strings.Cut(text, "{")
	if !ok {
		return Segment{Head: text}, nil
	}
	name, tail, ok := strings.Cut(rest, "}")
	if !ok || name == "" || strings.ContainsAny(tail, "{}") {
		return Segment{}, fmt.Errorf("path segment %q: write at most one variable in braces", text)
	}
	return Segment{Head: head, Name: name, Tail: tail}, nil
}

// String returns the segment as a spec file writes it.
func (s Segment) String() string {
	if s.Name == "" {
		return s.Head
	}
	return s.Head + "{" + s.Name + "}" + s.Tail
}

// HasLeadingVar reports whether the segment begins with its variable.
func (s Segment) HasLeadingVar() bool { return s.Head == "" && s.Name != "" }

func (s Segment) match(text string) (value string, ok bool) {
	if s.Name == "" {
		return "", text == s.Head
	}
	if len(text) <= len(s.Head)+len(s.Tail) || !strings.HasPrefix(text, s.Head) || !strings.HasSuffix(text, s.Tail) {
		return "", false
	}
	return text[len(s.Head) : len(text)-len(s.Tail)], true
}

// String returns the path as a spec file writes it.
func (t Template) String() string { return t.text }

// Segments returns the path's segments. They must not be changed.
func (t Template) Segments() []Segment { return t.segments }

// Vars returns the names of the variables, in order.
func (t Template) Vars() []string {
	var names []string
	for _, seg := range t.segments {
		if seg.Name != "" {
			names = append(names, seg.Name)
		}
	}
	return names
}

// Has reports whether the template has a variable of that name.
func (t Template) Has(name string) bool {
	return name != "" && slices.ContainsFunc(t.segments, func(seg Segment) bool { return seg.Name == name })
}

// Fill replaces each variable by its value, unescaped. The function value must do any necessary escaping, and may
// refuse a value. Then ok is false.
func (t Template) Fill(value func(name string) (text string, ok bool)) (path string, ok bool) {
	return fillBraces(t.text, value)
}

// FillEscaped is like Fill, but escapes each value as one path segment. It refuses an empty value.
func (t Template) FillEscaped(value func(name string) (text string, ok bool)) (path string, ok bool) {
	return t.Fill(func(name string) (string, bool) {
		text, ok := value(name)
		return url.PathEscape(text), ok && text != ""
	})
}

// fillBraces replaces each name in braces by its value.
func fillBraces(text string, value func(name string) (string, bool)) (filled string, ok bool) {
	var b strings.Builder
	for {
		head, rest, found := strings.Cut(text, "{")
		b.WriteString(head)
		if !found {
			return b.String(), true
		}
		name, tail, _ := strings.Cut(rest, "}")
		said, known := value(name)
		if !known {
			return "", false
		}
		b.WriteString(said)
		text = tail
	}
}

// FillFromPath fills the template from the beginning of a path, given as escaped segments. The tail of the last
// segment, such as an extension, may be missing in the path.
func (t Template) FillFromPath(path []string) (filled string, ok bool) {
	if len(path) < len(t.segments) {
		return "", false
	}
	var b strings.Builder
	for i, seg := range t.segments {
		text := path[i]
		if !seg.HasLeadingVar() {
			if text, err := url.PathUnescape(text); err != nil || text != seg.String() {
				return "", false
			}
			b.WriteString("/" + seg.String())
			continue
		}
		if i == len(t.segments)-1 {
			text = strings.TrimSuffix(text, seg.Tail)
		}
		if text == "" {
			return "", false
		}
		b.WriteString("/" + text + seg.Tail)
	}
	return b.String(), true
}

// IsPrefixOf reports whether a longer template begins with this template: the same literal segments, and variables of
// any name in the same places.
func (t Template) IsPrefixOf(longer Template) bool {
	if len(longer.segments) <= len(t.segments) {
		return false
	}
	for i, seg := range t.segments {
		other := longer.segments[i]
		if seg.HasLeadingVar() != other.HasLeadingVar() || !seg.HasLeadingVar() && seg != other {
			return false
		}
	}
	return true
}

// match returns the values of the variables for a path's decoded segments.
func (t Template) match(path []string) (vars []understudy.Param, ok bool) {
	if len(path) != len(t.segments) {
		return nil, false
	}
	for i, seg := range t.segments {
		value, ok := seg.match(path[i])
		if !ok {
			return nil, false
		}
		if seg.Name != "" {
			vars = append(vars, understudy.Param{Name: seg.Name, Value: value})
		}
	}
	return vars, true
}

// matchFolded is like match, but takes lower-case segments and accepts empty variables.
func (t Template) matchFolded(folded []string) bool {
	if len(folded) != len(t.segments) {
		return false
	}
	for i, seg := range t.segments {
		head, tail := strings.ToLower(seg.Head), strings.ToLower(seg.Tail)
		text := folded[i]
		fits := len(text) >= len(head)+len(tail) && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
		if !fits || seg.Name == "" && text != head {
			return false
		}
	}
	return true
}

// variableWeight returns the sort position of the template. Local.json is tried before {Sid}.json, and
// {Sid}.json before {Sid}.
func (t Template) variableWeight() int {
	n := 0
	for _, seg := range t.segments {
		if seg.Name != "" {
			n += 1000
			if seg.Head != "" || seg.Tail != "" {
				n--
			}
		}
	}
	return n
}
