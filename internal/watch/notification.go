// Notification: what a message says, on each channel.

package watch

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy/internal/query"
	"understudy/spec"
)

// Bounds of what people read.
const (
	mostListed = 20  // matches
	mostFacts  = 5   // of one
	maxFact    = 100 // characters
)

// notification is a message before it has a form.
type notification struct {
	ID      string
	Watch   Watch
	Request query.SearchRequest
	At      time.Time
	URL     string // of the viewer; "": no links
	Test    bool
	Matches []query.SearchHit // as the owner sees them
	sources []*spec.Source
}

// matchJSON is a record in a webhook.
type matchJSON struct {
	query.SearchHit
	URL string `json:"url,omitempty"`
}

// json is the body of a webhook: as those of the feed, a type, a time and data.
func (n *notification) json() []byte {
	type data struct {
		Watch   string      `json:"watch"`
		Search  string      `json:"search"`
		Query   string      `json:"q,omitempty"`
		URL     string      `json:"url,omitempty"`
		Count   int         `json:"count"`
		Matches []matchJSON `json:"matches"`
	}
	d := data{Watch: n.Watch.ID, Search: n.Watch.Search, Query: n.Request.Text, URL: n.page(), Count: len(n.Matches), Matches: []matchJSON{}}
	for _, h := range n.Matches {
		d.Matches = append(d.Matches, matchJSON{h, n.link(&h)})
	}
	kind := "watch.matches"
	if n.Test {
		kind = "watch.test"
	}
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      data      `json:"data"`
	}{kind, n.At, d})
	if err != nil { // views are JSON
		panic("watch: " + err.Error())
	}
	return body
}

// page is the address of the watch.
func (n *notification) page() string {
	if n.URL == "" {
		return ""
	}
	return n.URL + "/-/watches/" + url.PathEscape(n.Watch.ID)
}

// link is the address of a record, "" when the role does not see its id.
func (n *notification) link(h *query.SearchHit) string {
	if n.URL == "" || h.URL == "" {
		return ""
	}
	return n.URL + h.URL
}

// title says how much was found.
func (n *notification) title() string {
	switch {
	case n.Test:
		return "Test of the watch “" + n.Watch.Search + "”"
	case len(n.Matches) == 1:
		return "“" + n.Watch.Search + "” has a new match"
	}
	return "“" + n.Watch.Search + "” has " + strconv.Itoa(len(n.Matches)) + " new matches"
}

// testText is what a test says.
const testText = "This is a test. Nothing was found; messages of this watch arrive here."

// more says how many matches are not listed.
func (n *notification) more() string {
	if left := len(n.Matches) - mostListed; left > 0 {
		return fmt.Sprintf("… and %d more", left)
	}
	return ""
}

// slackSigns are what Slack reads as its own (its documents: formatting text for app
// surfaces, "escaping text").
var slackSigns = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slack is the body of an incoming webhook of Slack, and of those that read the same.
func (n *notification) slack() []byte {
	var b strings.Builder
	b.WriteString("*" + slackSigns.Replace(n.title()) + "*")
	if n.Test {
		b.WriteString("\n" + testText)
	}
	for i := range n.Matches[:min(len(n.Matches), mostListed)] {
		h := &n.Matches[i]
		name := slackSigns.Replace(strings.ReplaceAll(n.name(h), "|", "/"))
		if link := n.link(h); link != "" {
			name = "<" + slackSigns.Replace(link) + "|" + name + ">"
		}
		b.WriteString("\n• " + name)
		if facts := n.facts(h); len(facts) > 0 {
			b.WriteString(" · " + slackSigns.Replace(strings.Join(facts, " · ")))
		}
	}
	if more := n.more(); more != "" {
		b.WriteString("\n" + more)
	}
	if at := n.page(); at != "" {
		b.WriteString("\n<" + slackSigns.Replace(at) + "|The watch>")
	}
	body, err := json.Marshal(map[string]string{"text": b.String()})
	if err != nil { // a text marshals
		panic("watch: " + err.Error())
	}
	return body
}

// letter is the mail.
func (n *notification) letter() letter {
	var b strings.Builder
	b.WriteString(n.title() + ".\n")
	if n.Test {
		b.WriteString("\n" + testText + "\n")
	}
	for i := range n.Matches[:min(len(n.Matches), mostListed)] {
		h := &n.Matches[i]
		b.WriteString("\n" + n.name(h) + "\n")
		for _, f := range n.facts(h) {
			b.WriteString("  " + f + "\n")
		}
		if link := n.link(h); link != "" {
			b.WriteString("  " + link + "\n")
		}
	}
	if more := n.more(); more != "" {
		b.WriteString("\n" + more + "\n")
	}
	if at := n.page(); at != "" {
		b.WriteString("\nThe watch, its log and how it ends: " + at + "\n")
	}
	return letter{to: n.Watch.To.To, subject: "[Understudy] " + n.title(), text: b.String(), id: n.ID, at: n.At}
}

// name is a record in words: its kind and, if the role sees it, its id.
func (n *notification) name(h *query.SearchHit) string {
	kind := h.Kind
	if k := n.kind(h); k != nil && k.Singular != "" {
		kind = k.Singular
	}
	return strings.TrimSpace(kind + " " + h.ID)
}

func (n *notification) kind(h *query.SearchHit) *spec.Kind {
	for _, src := range n.sources {
		if src.Name == h.Source {
			return src.Spec.Kind(h.Kind)
		}
	}
	return nil
}

// facts are the first values of the columns of a record's kind, as the role sees them.
func (n *notification) facts(h *query.SearchHit) (all []string) {
	k := n.kind(h)
	if k == nil {
		return nil
	}
	var body map[string]any
	if json.Unmarshal(h.Body, &body) != nil {
		return nil
	}
	for _, column := range k.Columns {
		if value := valueOf(body, column); value != "" && value != h.ID {
			all = append(all, strings.ReplaceAll(column, "_", " ")+" "+value)
		}
		if len(all) == mostFacts {
			break
		}
	}
	return all
}

// valueOf is a value of a body in one line, "" when it is empty or no single value.
func valueOf(body map[string]any, field string) string {
	name, rest, inner := strings.Cut(field, ".")
	if _, whole := body[field]; whole {
		name, inner = field, false
	}
	switch v := body[name].(type) {
	case map[string]any:
		if inner {
			return valueOf(v, rest)
		}
	case string:
		return oneLine(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(s) > maxFact {
		s = string([]rune(s)[:maxFact]) + "…"
	}
	return s
}
