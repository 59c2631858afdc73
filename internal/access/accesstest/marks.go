// World: records that must not be found, with marks in every field, and a mirror of them.

// Package accesstest is a small world for tests of row rules: of every kind of
// a spec one record that roles may find, and one that is marked all over.
package accesstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/request"
	"understudy/spec"
)

// The values of the two records.
const (
	OwnNumber = "+15550000001" // in the phone fields of the open record
	Mark      = "XMARKX"       // in the text fields of the hidden one
	marked    = "+449998887770"
	digits    = 998877
	account   = "AC99999999999999999999999999999999"
)

// Marks are what stands in hidden records alone: none of it may be in an answer.
var Marks = []string{Mark, marked[1:], "998877", "99999999999999999999"}

// World is a spec's kinds with two records each, and a mirror that has them. It is safe for concurrent use.
type World struct {
	Source *spec.Source
	Now    time.Time
	Held   bool // the hidden records are held; else upstream alone has them

	mu    sync.Mutex
	Asked []request.Request // what the mirror was asked
	Sent  []request.Write
}

// Shown is the id of the record of a kind that roles may find.
func (w *World) Shown(kind string) string { return w.id(kind, "1") }

// Hidden is the id of the marked record of a kind.
func (w *World) Hidden(kind string) string { return w.id(kind, "9") }

// Never is an id of a kind that no record has.
func (w *World) Never(kind string) string { return w.id(kind, "0") }

func (w *World) id(kind, digit string) string {
	k := w.Source.Spec.Kind(kind)
	if len(k.ID) < 2 {
		prefix := "XX"
		if len(k.Prefixes) > 0 {
			prefix = k.Prefixes[0]
		}
		return prefix + strings.Repeat(digit, 32)
	}
	parts := make([]string, len(k.ID))
	for i, name := range k.ID {
		parts[i] = w.id(k.Field(name).Link, digit)
	}
	return k.JoinID(parts)
}

// Body is a kind's record of an id, nil when there is none.
func (w *World) Body(kind, id string) []byte {
	k := w.Source.Spec.Kind(kind)
	switch {
	case k == nil || len(k.ID) == 0:
		return nil
	case id == w.Shown(kind):
		return w.body(k, false)
	case id == w.Hidden(kind):
		return w.body(k, true)
	}
	return nil
}

func (w *World) body(k *spec.Kind, hidden bool) []byte {
	out := map[string]any{}
	for _, f := range k.Fields {
		if f.Type == spec.TypeMedia || f.Class == spec.ClassSecret {
			continue
		}
		at, name := out, f.Name
		for {
			outer, rest, dotted := strings.Cut(name, ".")
			if !dotted {
				break
			}
			inner, ok := at[outer].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[outer] = inner
			}
			at, name = inner, rest
		}
		if _, object := at[name].(map[string]any); !object {
			at[name] = w.value(k, f, hidden)
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic("accesstest: " + err.Error())
	}
	return body
}

func (w *World) value(k *spec.Kind, f *spec.Field, hidden bool) any {
	digit, at := "1", w.Now.Add(-24*time.Hour)
	if hidden {
		digit, at = "9", w.Now.Add(-100*24*time.Hour)
	}
	if i := slices.Index(k.ID, f.Name); i >= 0 {
		return strings.Split(w.id(k.Name, digit), spec.IDSeparator)[i]
	}
	switch {
	case f.Link == spec.AnyKind:
		return w.id("calls", digit)
	case f.Link == "accounts":
		if hidden {
			return account
		}
		return w.Source.User
	case f.Link != "":
		return w.id(f.Link, digit)
	case f.Class == spec.ClassPhone && hidden:
		return marked
	case f.Class == spec.ClassPhone:
		return OwnNumber
	}
	switch f.Type {
	case spec.TypeRFC2822:
		return at.Format(time.RFC1123Z)
	case spec.TypeISO:
		return at.Format(time.RFC3339)
	case spec.TypeDate:
		return at.Format(time.DateOnly)
	case spec.TypeEpoch:
		return at.Unix()
	case spec.TypeBool:
		return !hidden
	case spec.TypeInt, spec.TypeDecimal, spec.TypeCode:
		if hidden {
			return digits
		}
		return 7
	case spec.TypeMap:
		return map[string]any{}
	}
	if hidden {
		return Mark + " " + f.Name
	}
	return "plain"
}

// Newest looks records up as a store would: the open ones, and the hidden ones when they are held.
func (w *World) Newest(_, kind, id string) *understudy.Record {
	body := w.Body(kind, id)
	if body == nil || id == w.Hidden(kind) && !w.Held {
		return nil
	}
	return &understudy.Record{Source: w.Source.Name, Kind: kind, ID: id, Body: body}
}

// Own says which number is one of ours.
func (w *World) Own(_, number string) bool { return number == access.Number(OwnNumber) }

// Gate is a gate over the world with roles that find some records alone, by the rule's name. All see every field.
func (w *World) Gate(rules map[string]access.RowRules) (*access.Gate, error) {
	return w.GateAt(rules, func() time.Time { return w.Now })
}

// GateAt is Gate with a clock of its own.
func (w *World) GateAt(rules map[string]access.RowRules, now func() time.Time) (*access.Gate, error) {
	o := access.Options{
		Specs: map[string]*spec.Spec{w.Source.Name: w.Source.Spec}, Roles: access.Roles{}, Rows: map[string]map[string]access.RowRules{},
		Users: map[string]string{w.Source.Name: w.Source.User}, IsOwnNumber: w.Own, NewestVersion: w.Newest, Now: now,
	}
	for role, r := range rules {
		o.Roles[role] = map[string]map[string]string{w.Source.Name: {access.Everything: "see"}}
		o.Rows[role] = map[string]access.RowRules{w.Source.Name: r}
	}
	return access.NewWith(o)
}

// Rules are rules of every sort under which the marked records are hidden.
func Rules() map[string]access.RowRules {
	return map[string]access.RowRules{
		"age":    {access.Everything: {Age: 30 * 24 * time.Hour}},
		"number": {access.Everything: {Numbers: []string{access.OwnNumbers}}},
		"given":  {access.Everything: {Numbers: []string{"+1 555 000 0001"}}},
		"sub":    {access.Everything: {Where: map[string]access.Match{"account_sid": {In: []string{"AC00000000000000000000000000000001"}}}}},
		"prefix": {access.Everything: {Where: map[string]access.Match{"account_sid": {Prefix: "AC0"}}}},
		"none":   {access.Everything: {Word: access.FindNone}},
		"both":   {access.Everything: {Age: 30 * 24 * time.Hour, Numbers: []string{access.OwnNumbers}}},
	}
}

// Answer answers as a mirror would: lists under a local query from records, others and
// what is to be new as upstream's page; instances as they are, or upstream's 404.
func (w *World) Answer(_ context.Context, a request.Request) (*request.Response, error) {
	w.mu.Lock()
	w.Asked = append(w.Asked, a)
	w.mu.Unlock()
	t := a.Target
	p := &understudy.Page{Key: t.Key, List: t.List != nil, ID: t.ID, Status: http.StatusOK, ContentType: "application/json", Shape: t.Shape()}
	answer := &request.Response{Page: p, Outcome: request.Warm, Age: 12 * time.Second, TTL: 5 * time.Second}
	if a.NoCache && !a.JoinOnly {
		answer = &request.Response{Page: p, Outcome: request.Cold, ForwardReason: "request", Stored: true, UpstreamTime: 800 * time.Millisecond}
	}
	if a.JoinOnly { // it was fetched just now
		answer.Age = time.Second / 2
	}
	if t.Kind != nil {
		p.Kind = t.Kind.Name
	}
	switch {
	case t.List != nil:
		w.list(p, a)
		if a.Local != nil {
			answer.Outcome = request.Composed
		}
	case t.Kind != nil && t.ID != "" && w.Body(p.Kind, t.ID) != nil:
		p.Body = w.Body(p.Kind, t.ID)
	case t.Kind != nil && len(t.Kind.ID) == 0:
		p.Body = []byte(`{"everything":"` + Mark + `"}`)
	default:
		p.Status = http.StatusNotFound
		p.Body = []byte(`{"code":20404,"message":"The requested resource ` + t.Key.Path() + ` was not found","status":404}`)
		if !a.AsOf.IsZero() {
			return nil, fmt.Errorf("accesstest: %w", understudy.ErrNotFound)
		}
	}
	sum := sha256.Sum256(p.Body)
	copy(p.Sum[:], sum[:])
	return answer, nil
}

// list writes both records, those of a local query alone when there is one, under the record the path names.
func (w *World) list(p *understudy.Page, a request.Request) {
	t := a.Target
	var rows [][]byte
	last := ""
	add := func(hidden bool, id string) {
		body := []byte(`{"everything":"` + Mark + `"}`)
		if !hidden {
			body = []byte(`{"everything":"plain"}`)
		}
		if len(t.Kind.ID) > 0 {
			body = w.body(t.Kind, hidden)
		}
		if a.Local != nil && !a.Local.CanFind(&understudy.Record{Source: t.Key.Source, Kind: t.Kind.Name, Shape: t.List.Shape,
			ID: id, Body: body}) {
			return
		}
		rows, last = append(rows, body), id
	}
	path := t.Key.Path()
	under := func(digit string) bool { return strings.Contains(path, strings.Repeat(digit, 32)) }
	id := func(digit string) string {
		if len(t.Kind.ID) == 0 {
			return ""
		}
		return w.id(t.Kind.Name, digit)
	}
	if !under("9") && !under("0") {
		add(false, id("1"))
	}
	if !under("1") && !under("0") {
		add(true, id("9"))
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{%q:[%s]`, t.List.Key, bytes.Join(rows, []byte(",")))
	if a.Local == nil { // upstream's page names the next one by its last record
		fmt.Fprintf(&out, `,"next_page_uri":"%s?PageToken=PA%s","total":%d`, path, last, digits)
	}
	out.WriteString("}")
	p.Body = out.Bytes()
}

// Write notes a write and answers it with the record its path names, a new one that is marked when it names none.
func (w *World) Write(_ context.Context, write request.Write) (*request.Response, error) {
	w.mu.Lock()
	w.Sent = append(w.Sent, write)
	w.mu.Unlock()
	t := write.Target
	p := &understudy.Page{Status: http.StatusCreated, ContentType: "application/json", Body: []byte(`{"sid":"` + Mark + `"}`)}
	if t.Kind != nil {
		p.Kind = t.Kind.Name
		if len(t.Kind.ID) > 0 {
			p.Body = w.body(t.Kind, t.ID != w.Shown(p.Kind))
		}
	}
	return &request.Response{Page: p}, nil
}

// Open opens the content of a record: marked unless it is of the open one.
func (w *World) Open(_ context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	text := "content of " + Mark
	if a.Target.ID == w.Shown(a.Target.Kind.Name) {
		text = "content"
	}
	return &request.MediaResponse{Status: http.StatusOK, ContentType: "audio/mpeg", Size: int64(len(text)),
		ReadCloser: io.NopCloser(strings.NewReader(text))}, nil
}

// Marked is the first mark in a text, "" when there is none; what was asked for may be in it.
func Marked(text string, asked ...string) string {
	for _, a := range asked {
		text = strings.ReplaceAll(text, a, "ASKED")
	}
	for _, m := range Marks {
		if i := strings.Index(text, m); i >= 0 {
			return text[max(0, i-60):min(len(text), i+60)]
		}
	}
	return ""
}

// ReadEdition says that no record comes or goes.
func (w *World) ReadEdition(context.Context, string) (change, silent int64, err error) {
	return 1, 0, nil
}

// ReadHistory returns two versions of a stored record.
func (w *World) ReadHistory(_ context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	rec := w.Newest(source, kind, id)
	if rec == nil {
		return nil, fmt.Errorf("accesstest: %w", understudy.ErrNotFound)
	}
	shape := kind
	if lists := w.Source.Spec.Kind(kind).Lists; len(lists) > 0 {
		shape = lists[0].Shape
	}
	then := bytes.Replace(rec.Body, []byte(`"plain"`), []byte(`"former"`), 1)
	all := []understudy.Version{
		{Number: 2, Shape: shape, Body: rec.Body, From: w.Now.Add(-time.Hour)},
		{Number: 1, Shape: shape, Body: then, From: w.Now.Add(-2 * time.Hour), Until: w.Now.Add(-time.Hour)},
	}
	return all[:min(limit, len(all))], nil
}
