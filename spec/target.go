// This file declares Target, the meaning of one request under a spec.

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
	Key       understudy.Key
	Spec      *Spec
	Kind      *Kind              // the kind, or nil if the spec names no kind for the path
	List      *List              // the list, if the path is a list of Kind
	Instance  *Instance          // the instance, if the path is an instance of Kind
	Media     *Media             // the media path, if the path is the content of a record of Kind
	Vars      []understudy.Param // the path's variables with their values, in order
	ID        string             // the id of the record that an instance or media path names
	Query     understudy.Query   // the canonical query, as in Key
	OwnParams understudy.Query   // the understudy.* parameters of the request
	Header    understudy.Query   // the header fields that are part of the key, sorted by name
	First     bool               // whether the target is the newest page of a list: without page or token parameters
	PageSize  int                // the requested or default page size; 0 if the list has no pages or the size is not a number
	Slashed   bool               // whether a variable of the path contains a slash
	// Whether the path has no kind, but would have one if letter case, empty segments and ;parameters were ignored
	NearMiss bool
}

// Shape returns the shape of the records in the answer.
func (t *Target) Shape() string {
	switch {
	case t.List != nil:
		return t.List.Shape
	case t.Instance != nil:
		return t.Instance.Shape
	}
	return ""
}

// PathTemplate returns the path in the spec, without the values of its variables. It returns "" if the spec does not name the path.
func (t *Target) PathTemplate() string {
	switch {
	case t == nil:
	case t.List != nil:
		return t.List.Path
	case t.Instance != nil:
		return t.Instance.Path
	case t.Media != nil:
		return t.Media.Path
	}
	return ""
}

// WithHeader returns the target of the same request with header fields that are part of the key
// (Headers.ReadKey). The error is ErrTooLong.
func (t *Target) WithHeader(header understudy.Query) (*Target, error) {
	if len(header) == 0 {
		return t, nil
	}
	with := *t
	with.Header = header
	with.Key = t.Key.WithHeader(header.String())
	if len(with.Key.URI) > MaxKey {
		return nil, fmt.Errorf("%w: the request target and the header fields are longer than %d bytes", understudy.ErrTooLong, MaxKey)
	}
	return &with, nil
}

// StripHeader returns the target without header fields.
func (t *Target) StripHeader() *Target {
	if len(t.Header) == 0 {
		return t
	}
	plain := *t
	plain.Header, plain.Key.URI = nil, t.Key.RequestURI()
	return &plain
}

// HasKeyHeader reports whether a header field asks for another account's data or for another form. Such an
// answer stays in memory, and its records are not stored.
func (t *Target) HasKeyHeader() bool { return len(t.Header) > 0 }

// IsWidened reports whether the request makes the upstream return more than usual, such as deleted records.
// That is so if a filter of any list of the kind has op widen and a value other than false. Such an answer does
// not prove which records exist.
func (t *Target) IsWidened() bool {
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

// DropReason says why the records in the answer are not stored. It returns "" if they are stored.
func (t *Target) DropReason() string {
	switch name := t.UnknownParam(); {
	case name != "":
		return "the spec does not name the parameter " + understudy.Clip(name)
	case t.IsWidened():
		return "it was asked to show what is deleted, too"
	case t.IsReordered():
		return "it was asked for in another order"
	case t.HasKeyHeader():
		return "it was asked with the header " + t.Header[0].Name
	}
	return ""
}

// UnknownParam returns a parameter of the request that the spec does not name, or "". A list accepts its own
// parameters. An instance accepts those of all lists of its kind. The effect of an unknown parameter is not
// known: it may change the form of records (expand, fields). A parameter with op aside counts as unknown unless
// it has its default.
func (t *Target) UnknownParam() string {
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
			return l.rank(t.Spec.PagingOf(l), p.Name) != unnamedRank && (f == nil || f.Op != opAside || p.Value == f.Default)
		}
		if !slices.ContainsFunc(lists, named) {
			return p.Name
		}
	}
	return ""
}

// Shapes returns the distinct shapes of a kind's lists and instances.
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

// IsAddressed reports whether the target's record is found by its URL, because the path does not contain its id.
func (t *Target) IsAddressed() bool {
	return t.Instance != nil && t.ID == "" && t.Instance.Address != ""
}

// Var returns the value of a path variable, or "".
func (t *Target) Var(name string) string {
	v, _ := understudy.Query(t.Vars).Get(name)
	return v
}

// EnclosingIDs returns the values of those variables of a media path that name other records.
func (t *Target) EnclosingIDs() []string {
	var within []string
	for _, v := range t.Vars {
		if t.Media == nil || !slices.Contains(t.Media.ID, v.Name) {
			within = append(within, v.Value)
		}
	}
	return within
}

// StorageShape returns the shape under which the answer's records are stored in a source of that user. For
// another user's records that do not show their user, it is the shape with ForeignShapeSuffix.
func (t *Target) StorageShape(user string) string {
	if t.Kind == nil || t.Kind.unscopedVar == "" {
		return t.Shape()
	}
	if whose := t.Var(t.Kind.unscopedVar); whose == "" || whose == user {
		return t.Shape()
	}
	return t.Shape() + ForeignShapeSuffix
}

// ForeignShapeSuffix ends the shape of records that do not show their user and were found under a path of
// another user. So records in a list's own shape belong to the source's user.
const ForeignShapeSuffix = "@elsewhere"

// UnscopedVar returns the variable in the kind's list paths that is filled with the source's user but that no field of
// the records contains, or "".
func (k *Kind) UnscopedVar() string { return k.unscopedVar }

// findUnscopedVar sets the kind's unscoped variable. Only the last variable of a path counts. If another variable
// follows, the record that it names tells the user.
func (s *Spec) findUnscopedVar(k *Kind) {
	for _, l := range k.Lists {
		vars := l.template.Vars()
		if len(vars) == 0 {
			continue
		}
		name := vars[len(vars)-1]
		field, shown := s.VarFields[name]
		if _, own := s.Vars[name]; own && shown && k.fields[field] == nil && len(k.ID) > 0 {
			k.unscopedVar = name
			return
		}
	}
}

// checkAnswer completes the instance's answer template and checks that it is JSON with the record at Key.
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
		return errors.New("write {record} exactly once")
	}
	body, start, _ := in.Wrap([]byte(`{}`), "/", "")
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return fmt.Errorf("it is not JSON after filling: %s", understudy.Clip(string(body)))
	}
	if v, ok := jsonspan.Find(body, doc, in.Key); !ok || v.Start != start {
		return fmt.Errorf("write {record} at the key %q", in.Key)
	}
	return nil
}

// Wrap returns the upstream's answer for a record, and the position of the record in it. uri and url are the
// address of the answer.
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

// IsWrapped reports whether an instance of the kind has its record under a key.
func (k *Kind) IsWrapped() bool {
	return slices.ContainsFunc(k.Instances, func(in *Instance) bool { return in.Key != "" })
}

// RecordKey returns the key under which an answer about one record contains the record, or "" if the body is the
// record. The answer to a write has no path; then the position of its row decides.
func (s *Spec) RecordKey(p *understudy.Page) string {
	k := s.kinds[p.Kind]
	if k == nil || p.List || !k.IsWrapped() {
		return ""
	}
	if p.Key.URI != "" {
		if t, err := s.ResolveKey(p.Key); err == nil && t.Instance != nil {
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
