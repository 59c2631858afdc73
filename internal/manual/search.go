// This file searches the sections of the documentation.

package manual

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

const (
	maxQueryWords = 8   // the maximum number of words of a query; further words are ignored
	maxHits       = 30  // the maximum number of sections that a search returns
	excerptRunes  = 180 // the length of an excerpt, in characters
)

// section is a heading with the text below it, up to the next heading.
type section struct {
	title, anchor string
	text          string
	folded        string // the title and the text of the section in lower case
}

// Hit is a section that contains all words of a query.
type Hit struct {
	Page    *Page
	Title   string // the heading of the section
	Address string // the page's path and the section's anchor
	Excerpt string // the text around the first word found
}

// Search returns at most 30 sections that contain every word of the query. Sections with the most words in their heading
// come first; then the order is that of the table of contents. A word also matches longer words that begin with it.
func (m *Manual) Search(query string) []Hit {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
	words = words[:min(len(words), maxQueryWords)]
	if len(words) == 0 {
		return nil
	}
	type scored struct {
		Hit
		score int
	}
	var found []scored
	pages := []*Page{m.Index}
	for _, g := range m.Groups {
		pages = append(pages, g.Pages...)
	}
	for _, p := range pages {
		for _, s := range p.sections {
			if score := s.score(words); score > 0 {
				hit := Hit{Page: p, Title: s.title, Address: p.Path + "#" + s.anchor, Excerpt: s.excerpt(words[0])}
				found = append(found, scored{hit, score})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	hits := make([]Hit, 0, min(len(found), maxHits))
	for _, f := range found[:cap(hits)] {
		hits = append(hits, f.Hit)
	}
	return hits
}

// score returns 0 if the section lacks one of the words. Otherwise it returns 1, plus 1 for each word in the
// section's heading.
func (s section) score(words []string) int {
	score := 1
	title := strings.ToLower(s.title)
	for _, w := range words {
		if wordAt(s.folded, w) < 0 {
			return 0
		}
		if wordAt(title, w) >= 0 {
			score++
		}
	}
	return score
}

// wordAt returns the position in the text of a word that begins with the given word, or -1 if there is none.
func wordAt(in, word string) int {
	for from := 0; ; {
		i := strings.Index(in[from:], word)
		if i < 0 {
			return -1
		}
		at := from + i
		before := []rune(in[max(0, at-4):at])
		if len(before) == 0 || !unicode.IsLetter(before[len(before)-1]) {
			return at
		}
		from = at + len(word)
	}
}

// excerpt returns the text of the section around a word, with complete words at both ends.
func (s section) excerpt(word string) string {
	runes := []rune(s.text)
	at := max(0, wordAt(strings.ToLower(s.text), word))
	start := max(0, len([]rune(s.text[:min(at, len(s.text))]))-excerptRunes/3)
	for start > 0 && !unicode.IsSpace(runes[start-1]) {
		start--
	}
	end := min(len(runes), start+excerptRunes)
	for end < len(runes) && !unicode.IsSpace(runes[end]) {
		end++
	}
	out := strings.TrimSpace(string(runes[start:end]))
	if start > 0 {
		out = "… " + out
	}
	if end < len(runes) {
		out += " …"
	}
	return out
}

// sections splits a document at its headings.
func (d *document) sections() (all []section) {
	var b strings.Builder
	end := func() {
		if len(all) > 0 {
			s := &all[len(all)-1]
			s.text = strings.Join(strings.Fields(b.String()), " ")
			s.folded = strings.ToLower(s.title + " " + s.text)
		}
		b.Reset()
	}
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			d.writeText(&b, n)
			continue
		}
		end()
		var title strings.Builder
		d.writeText(&title, h)
		id, _ := h.AttributeString("id")
		anchor, _ := id.([]byte)
		all = append(all, section{title: strings.TrimSpace(title.String()), anchor: string(anchor)})
	}
	end()
	return all
}

// writeText writes the text of a node without its markup.
func (d *document) writeText(b *strings.Builder, n ast.Node) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(d.source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					b.Write(line.Value(d.source))
				}
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
}

// anchors gives headings the same ids as GitHub and similar sites do: letters and digits in lower case, and hyphens
// for spaces.
type anchors struct{ taken map[string]bool }

// Generate returns an id for a heading that no earlier heading of the page has.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(string(value))) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	id := b.String()
	for i := 1; a.taken[id]; i++ {
		id = b.String() + "-" + strconv.Itoa(i)
	}
	a.taken[id] = true
	return []byte(id)
}

// Put notes an id that a document itself sets.
func (a *anchors) Put(value []byte) { a.taken[string(value)] = true }
