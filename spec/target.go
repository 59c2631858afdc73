// Target: what one request means under a spec.

package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec/paging"
)

// Target is what one request means under a spec.
type Target struct {
	Key      understudy.Key
	Spec     *Spec
	Kind     *Kind              // nil: the spec names no kind for the path
	List     *List              // set for a list of Kind
	Instance *Instance          // set for an instance of Kind
	Media    *Media             // set for the content of a record of Kind
	Vars     []understudy.Param // the path's variables, in order
	ID       string             // the record an instance or media path names
	Query    understudy.Query   // canonical, as in Key
	Own      understudy.Query   // understudy.* parameters
	Header   understudy.Query   // the header fields that are part of the key, by name
	First    bool               // a list asked without a page or token: its newest page
	PageSize int                // asked or default; 0 when unpaged or not a number
	Slashed  bool               // a variable has a slash in it
	NearMiss bool               // no kind, but the path would have one if case, empty segments and ;parameters did not count
}

// Shape is the shape of the records in the answer.
func (t *Target) Shape() string {
	switch {
	case t.List != nil:
		return t.List.Shape
	case t.Instance != nil:
		return t.Instance.Shape
	}
	return ""
}

// With is the target asked with header fields that are part of the key (Headers.Read).
// The error is ErrTooLong.
func (t *Target) With(header understudy.Query) (*Target, error) {
	if len(header) == 0 {
		return t, nil
	}
	with := *t
	with.Header = header
	with.Key = t.Key.With(header.String())
	if len(with.Key.URI) > MaxKey {
		return nil, fmt.Errorf("%w: request target and header fields longer than %d bytes", understudy.ErrTooLong, MaxKey)
	}
	return &with, nil
}

// Plain is the target without header fields.
func (t *Target) Plain() *Target {
	if len(t.Header) == 0 {
		return t
	}
	plain := *t
	plain.Header, plain.Key.URI = nil, t.Key.Asked()
	return &plain
}

// Apart reports whether the answer stays in memory and its records are not kept: a header
// field says that it is about another account, or in another form.
func (t *Target) Apart() bool { return len(t.Header) > 0 }

// Widened reports whether the request makes upstream show more than usual, such as
// deleted records: a filter with op widen, of any list of the kind, has a value that is
// not false. Such an answer does not tell which records exist.
func (t *Target) Widened() bool {
	if t.Kind == nil || len(t.Query) == 0 {
		return false
	}
	for _, l := range t.Kind.Lists {
		for _, f := range l.Filters {
			if f.Op != "widen" {
				continue
			}
			for _, p := range t.Query {
				if p.Name == f.Name && !strings.EqualFold(p.Value, "false") {
					return true
				}
			}
		}
	}
	return false
}

// Alone returns why the records in the answer are not kept; "" when they are.
func (t *Target) Alone() string {
	switch name := t.Unnamed(); {
	case name != "":
		return "the spec does not name the parameter " + understudy.Clip(name)
	case t.Widened():
		return "it was asked to show what is deleted, too"
	case t.Reordered():
		return "it was asked for in another order"
	case t.Apart():
		return "it was asked with the header " + t.Header[0].Name
	}
	return ""
}

// Unnamed is a parameter of the request that the spec does not name, or "". A list has
// the parameters of its own; one record has those of all lists of its kind. The effect
// of such a parameter on the answer is not known: it may give records another form
// (expand, fields). So may one that is called aside.
func (t *Target) Unnamed() string {
	if t.Kind == nil || len(t.Query) == 0 {
		return ""
	}
	lists := t.Kind.Lists
	if t.List != nil {
		lists = []*List{t.List}
	}
	for _, p := range t.Query {
		named := func(l *List) bool {
			f := l.Filter(p.Name)
			return l.rank(t.Spec.PagingOf(l), p.Name) != unnamed && (f == nil || f.Op != opAside || p.Value == f.Default)
		}
		if !slices.ContainsFunc(lists, named) {
			return p.Name
		}
	}
	return ""
}

// Shapes are those of a kind's lists and instances, each once.
func (k *Kind) Shapes() (all []string) {
	for _, l := range k.Lists {
		all = append(all, l.Shape)
	}
	for _, in := range k.Instances {
		all = append(all, in.Shape)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Addressed reports whether the target's record is found by its own address: the path does
// not have its id.
func (t *Target) Addressed() bool {
	return t.Instance != nil && t.ID == "" && t.Instance.Address != ""
}

// Var is the value of a path variable, "" when there is none.
func (t *Target) Var(name string) string {
	v, _ := understudy.Query(t.Vars).Get(name)
	return v
}

// Within are the values of a media path's variables that name other records.
func (t *Target) Within() []string {
	var within []string
	for _, v := range t.Vars {
		if t.Media == nil || !slices.Contains(t.Media.ID, v.Name) {
			within = append(within, v.Value)
		}
	}
	return within
}

// KeptAs is the shape under which the answer's records are kept in a source of that
// user: Shape, or the foreign shape of records that do not show their user.
func (t *Target) KeptAs(user string) string {
	if t.Kind == nil || t.Kind.unscopedVar == "" {
		return t.Shape()
	}
	if whose := t.Var(t.Kind.unscopedVar); whose == "" || whose == user {
		return t.Shape()
	}
	return t.Shape() + ForeignShape
}

// ForeignShape ends the shape of records that do not say whose they are and were seen
// under a path of another user. So the records in a list's own shape are the source's
// user's.
const ForeignShape = "@elsewhere"

// UnscopedVar is the variable in the paths of a kind's lists that the source's user
// fills in and no field of the records shows; "" without one.
func (k *Kind) UnscopedVar() string { return k.unscopedVar }

// findUnscopedVar finds it. When another variable follows, its record says whose it is.
func (s *Spec) findUnscopedVar(k *Kind) {
	for _, l := range k.Lists {
		vars := l.template.Vars()
		if len(vars) == 0 {
			continue
		}
		name := vars[len(vars)-1]
		field, shown := s.Shown[name]
		if _, own := s.Vars[name]; own && shown && k.fields[field] == nil && len(k.ID) > 0 {
			k.unscopedVar = name
			return
		}
	}
}

// checkAnswer completes the instance's answer and makes sure that it is JSON with the record at Key.
func (in *Instance) checkAnswer() error {
	if in.Answer == "" {
		in.Answer = "{record}"
		for name := range strings.SplitSeq(in.Key, ".") {
			if in.Key != "" {
				in.Answer = strings.Replace(in.Answer, "{record}", "{"+string(jsonspan.Quote(nil, name))+":{record}}", 1)
			}
		}
	}
	if strings.Count(in.Answer, "{record}") != 1 {
		return errors.New("want {record} in it, once")
	}
	body, start, _ := in.Wrap([]byte(`{}`), "/", "")
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return fmt.Errorf("it makes no JSON: %s", understudy.Clip(string(body)))
	}
	if v, ok := jsonspan.Find(body, doc, in.Key); !ok || v.Start != start {
		return fmt.Errorf("want {record} at the key %q", in.Key)
	}
	return nil
}

// Wrap returns the answer that upstream gives with a record, and where the record begins in it. uri
// and url are where the answer stands.
func (in *Instance) Wrap(record []byte, uri, url string) (body []byte, start, end int) {
	if in.Answer == "{record}" {
		return record, 0, len(record)
	}
	body = make([]byte, 0, len(in.Answer)+len(record)+len(uri)+len(url))
	for rest := in.Answer; ; {
		before, word, after, found := paging.CutWord(rest)
		body = append(body, before...)
		switch rest = after; {
		case !found:
			return body, start, end
		case word == "record":
			start = len(body)
			body = append(body, record...)
			end = len(body)
		case word == "uri":
			body = jsonspan.Quote(body, uri)
		case word == "url":
			body = jsonspan.Quote(body, url)
		}
	}
}

// Wrapped reports whether an instance of the kind has its record under a key.
func (k *Kind) Wrapped() bool {
	return slices.ContainsFunc(k.Instances, func(in *Instance) bool { return in.Key != "" })
}

// RecordKey returns the key under which an answer about one record has it; "" when the body is the
// record. The answer to a write has no path: there its row says where the record stands.
func (s *Spec) RecordKey(p *understudy.Page) string {
	k := s.kinds[p.Kind]
	if k == nil || p.List || !k.Wrapped() {
		return ""
	}
	if p.Key.URI != "" {
		if t, err := s.TargetOf(p.Key); err == nil && t.Instance != nil {
			return t.Instance.Key
		}
		return ""
	}
	doc, err := jsonspan.Parse(p.Body)
	if err != nil || len(p.Rows) != 1 {
		return ""
	}
	for _, in := range k.Instances {
		if v, ok := jsonspan.Find(p.Body, doc, in.Key); ok && v.Start == p.Rows[0].Start {
			return in.Key
		}
	}
	return ""
}
