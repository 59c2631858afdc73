// This file writes the text of a message, for each channel.

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

	"understudy/internal/push"
	"understudy/internal/query"
	"understudy/spec"
)

// Limits of a message that people read.
const (
	maxListed         = 20 // the maximum number of listed matches
	maxFacts          = 5  // the maximum number of values listed for one match
	maxFactCharacters = 100
)

// notification is the content of a message, independent of its channel.
type notification struct {
	ID      string
	Watch   Watch
	Request query.SearchRequest
	At      time.Time
	URL     string // the viewer's address; "" means that the message has no links
	Test    bool
	Matches []query.SearchHit // the matching records as the owner sees them
	sources []*spec.Source
}

// matchJSON is a matching record in the JSON body of a webhook.
type matchJSON struct {
	query.SearchHit
	URL string `json:"url,omitempty"`
}

// webhookBody returns the body of a webhook: a type, a time and data, as in the webhooks of the feed.
func (n *notification) webhookBody() []byte {
	type data struct {
		Watch   string      `json:"watch"`
		Search  string      `json:"search"`
		Query   string      `json:"q,omitempty"`
		URL     string      `json:"url,omitempty"`
		Count   int         `json:"count"`
		Matches []matchJSON `json:"matches"`
	}
	d := data{Watch: n.Watch.ID, Search: n.Watch.Search, Query: n.Request.Text, URL: n.watchURL(), Count: len(n.Matches),
		Matches: []matchJSON{}}
	for _, h := range n.Matches {
		d.Matches = append(d.Matches, matchJSON{h, n.recordURL(&h)})
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
	if err != nil { // cannot fail, because the views are JSON
		panic("watch: " + err.Error())
	}
	return body
}

// watchURL returns the address of the watch's page, or "" if there is no address.
func (n *notification) watchURL() string {
	if n.URL == "" {
		return ""
	}
	return n.URL + "/-/watches/" + url.PathEscape(n.Watch.ID)
}

// recordURL returns the address of a record's page, or "" if the role does not see the id.
func (n *notification) recordURL(h *query.SearchHit) string {
	if n.URL == "" || h.URL == "" {
		return ""
	}
	return n.URL + h.URL
}

func (n *notification) title() string {
	switch {
	case n.Test:
		return "Test of the watch “" + n.Watch.Search + "”"
	case len(n.Matches) == 1:
		return "“" + n.Watch.Search + "” has a new match"
	}
	return "“" + n.Watch.Search + "” has " + strconv.Itoa(len(n.Matches)) + " new matches"
}

// testText is the text of a test message.
const testText = "This is a test. Nothing was found; messages of this watch arrive here."

// moreText returns a line which says how many matches are not listed, or "" if all are listed.
func (n *notification) moreText() string {
	if left := len(n.Matches) - maxListed; left > 0 {
		return fmt.Sprintf("… and %d more", left)
	}
	return ""
}

// slackEscapes escapes the characters that Slack interprets (Slack documentation: formatting text for app surfaces,
// "escaping text").
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackBody returns the body for an incoming webhook of Slack or a compatible service.
func (n *notification) slackBody() []byte {
	var b strings.Builder
	b.WriteString("*" + slackEscapes.Replace(n.title()) + "*")
	if n.Test {
		b.WriteString("\n" + testText)
	}
	for i := range n.Matches[:min(len(n.Matches), maxListed)] {
		h := &n.Matches[i]
		name := slackEscapes.Replace(strings.ReplaceAll(n.name(h), "|", "/"))
		if link := n.recordURL(h); link != "" {
			name = "<" + slackEscapes.Replace(link) + "|" + name + ">"
		}
		b.WriteString("\n• " + name)
		if facts := n.facts(h); len(facts) > 0 {
			b.WriteString(" · " + slackEscapes.Replace(strings.Join(facts, " · ")))
		}
	}
	if more := n.moreText(); more != "" {
		b.WriteString("\n" + more)
	}
	if at := n.watchURL(); at != "" {
		b.WriteString("\n<" + slackEscapes.Replace(at) + "|The watch>")
	}
	body, err := json.Marshal(map[string]string{"text": b.String()})
	if err != nil { // cannot fail, because every string can be encoded
		panic("watch: " + err.Error())
	}
	return body
}

// maxPushed is the maximum number of matches that a notification on a screen lists.
const maxPushed = 4

// pushMessage returns the message for browsers and devices. A newer message of the same watch replaces it on the screen.
func (n *notification) pushMessage() push.Message {
	m := push.Message{ID: n.ID, Title: n.title(), URL: n.watchURL(), Tag: n.Watch.ID}
	if n.Test {
		m.Body = testText
	}
	var lines []string
	for i := range n.Matches[:min(len(n.Matches), maxPushed)] {
		h := &n.Matches[i]
		lines = append(lines, strings.Join(append([]string{n.name(h)}, n.facts(h)...), " · "))
	}
	m.Body += strings.Join(lines, "\n")
	return m
}

// letter returns the message as a mail.
func (n *notification) letter() letter {
	var b strings.Builder
	b.WriteString(n.title() + ".\n")
	if n.Test {
		b.WriteString("\n" + testText + "\n")
	}
	for i := range n.Matches[:min(len(n.Matches), maxListed)] {
		h := &n.Matches[i]
		b.WriteString("\n" + n.name(h) + "\n")
		for _, f := range n.facts(h) {
			b.WriteString("  " + f + "\n")
		}
		if link := n.recordURL(h); link != "" {
			b.WriteString("  " + link + "\n")
		}
	}
	if more := n.moreText(); more != "" {
		b.WriteString("\n" + more + "\n")
	}
	if at := n.watchURL(); at != "" {
		b.WriteString("\nTo see or end this watch: " + at + "\n")
	}
	return letter{to: n.Watch.To.To, subject: "[Understudy] " + n.title(), text: b.String(), id: n.ID, at: n.At}
}

// name returns the kind of a record, with its id if the role sees the id.
func (n *notification) name(h *query.SearchHit) string {
	kind := h.Kind
	if k := n.kind(h); k != nil && k.Singular != "" {
		kind = k.Singular
	}
	return strings.TrimSpace(kind + " " + h.ID)
}

func (n *notification) kind(h *query.SearchHit) *spec.Kind {
	if src := spec.FindSource(n.sources, h.Source); src != nil {
		return src.Spec.Kind(h.Kind)
	}
	return nil
}

// facts returns the first values of the columns of a record's kind, as the role sees them.
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
		if len(all) == maxFacts {
			break
		}
	}
	return all
}

// valueOf returns a value of a JSON body in one line, or "" if the value is empty, an object or an array.
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
		v = strings.Join(strings.FieldsFunc(v, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
		if utf8.RuneCountInString(v) > maxFactCharacters {
			v = string([]rune(v)[:maxFactCharacters]) + "…"
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
