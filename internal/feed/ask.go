// Ask: what a subscriber wants, read from its request.

package feed

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/jsonapi"
	"understudy/kit/suggest"
	"understudy/spec"
)

const (
	defaultPage = 100  // changes on a page
	maxPage     = 1000 // at most
	maxNames    = 50   // of kinds or fields in a request
	maxQuery    = 8 << 10
)

// query is a request's parameters, by form alone.
type query struct {
	source string
	after  string // a cursor; "" without one
	now    bool   // from now on
	kinds  []string
	fields []string
	limit  int           // 0: none given
	wait   time.Duration // less than 0: none given
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("feed: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}

// readQuery reads the parameters; lastEvent is the header Last-Event-ID and
// goes before after. Errors are ErrInvalid.
func readQuery(raw, lastEvent string) (query, error) {
	q := query{wait: -1}
	if len(raw) > maxQuery {
		return q, invalid("the query is longer than %d bytes", maxQuery)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, invalid("the query cannot be read")
	}
	known := []string{"source", "after", "kind", "field", "limit", "wait"}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return q, invalid("unknown parameter %q%s", understudy.Clip(name), suggest.Hint(understudy.Clip(name), known))
		case name != "kind" && name != "field" && len(all) > 1:
			return q, invalid("%s is there %d times", name, len(all))
		case len(all) > maxNames:
			return q, invalid("more than %d of %s", maxNames, name)
		case slices.Contains(all, ""):
			return q, invalid("%s is empty", name)
		}
	}
	q.source, q.after, q.kinds, q.fields = values.Get("source"), values.Get("after"), values["kind"], values["field"]
	if lastEvent != "" {
		q.after = lastEvent
	}
	if q.after == "now" {
		q.after, q.now = "", true
	}
	if len(q.after) > maxCursor {
		return q, invalid("after is longer than a place in the feed")
	}
	if text := values.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > maxPage {
			return q, invalid("limit=%s: want 1 to %d", understudy.Clip(text), maxPage)
		}
	}
	if text := values.Get("wait"); text != "" {
		if q.wait, err = understudy.ParseDuration(text); err != nil || q.wait < 0 {
			return q, invalid("wait=%s: want a time like 30s", understudy.Clip(text))
		}
	}
	return q, nil
}

// subscription is a request that may be answered.
type subscription struct {
	query  query
	caller understudy.Caller
	policy *policy
	group  *roleGroup
	reader *reader
	start  int64 // the place it begins at
}

// isOver reports whether another policy is in force, the feed has ended or the grant is
// revoked.
func (s *subscription) isOver() bool { return s.policy.isOver() || s.caller.Grant.IsRevoked() }

// subscribe checks the caller and the parameters of a request.
func (f *Feed) subscribe(ctx context.Context, r *http.Request, pages bool) (*subscription, error) {
	s := &subscription{policy: f.now.Load()}
	var err error
	if s.caller, err = f.who(r, s.policy); err != nil {
		return nil, err
	}
	if s.query, err = readQuery(r.URL.RawQuery, r.Header.Get("Last-Event-ID")); err != nil {
		return nil, err
	}
	if s.query.wait > f.o.Limits.Wait {
		return nil, invalid("wait=%v: want at most %v", s.query.wait, f.o.Limits.Wait)
	}
	if err := f.sourceOf(s); err != nil {
		return nil, err
	}
	if err := s.query.allowed(s.policy.rules.Gate, s.caller, f.spec(s.query.source)); err != nil {
		return nil, err
	}
	return s, f.begin(ctx, s, pages)
}

// who returns the caller: a person, or a request with the token.
func (f *Feed) who(r *http.Request, now *policy) (understudy.Caller, error) {
	return jsonapi.Person(r, f.o.Token, now.rules.Callers.IdentifyPerson)
}

// sourceOf finds the source: the one named, the caller's, or the only one.
func (f *Feed) sourceOf(s *subscription) error {
	s.query.source = cmp.Or(s.query.source, s.caller.Source)
	if s.query.source == "" && len(f.names) == 1 {
		s.query.source = f.names[0]
	}
	if s.query.source == "" {
		return invalid("which source? there is %s", strings.Join(f.names, ", "))
	}
	if s.reader = f.readers[s.query.source]; s.reader == nil {
		return invalid("no source is called %q%s", understudy.Clip(s.query.source), suggest.Hint(understudy.Clip(s.query.source), f.names))
	}
	return nil
}

// allowed says whether the caller may ask for these kinds and fields.
func (q *query) allowed(gate *access.Gate, c understudy.Caller, sp *spec.Spec) error {
	seen := []string{}
	for _, k := range sp.Kinds {
		if gate.CanSee(c, q.source, k.Name) {
			seen = append(seen, k.Name)
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("feed: %w: role %s may see nothing of %s", understudy.ErrForbidden, c.Role(), q.source)
	}
	for _, kind := range q.kinds {
		switch {
		case sp.Kind(kind) == nil:
			return invalid("%s has no kind %q%s", q.source, understudy.Clip(kind), suggest.Hint(understudy.Clip(kind), seen))
		case !slices.Contains(seen, kind):
			return fmt.Errorf("feed: %w: role %s may not see %s", understudy.ErrForbidden, c.Role(), kind)
		}
	}
	kinds := q.kinds
	if len(kinds) == 0 {
		kinds = seen
	}
	for _, field := range q.fields {
		if err := q.fieldAllowed(gate, c, sp, kinds, field); err != nil {
			return err
		}
	}
	return nil
}

// fieldAllowed refuses a field that is hidden in one of the kinds that have it. If
// no kind has the field, it is refused to callers that see only fields of the spec.
func (q *query) fieldAllowed(gate *access.Gate, c understudy.Caller, sp *spec.Spec, kinds []string, field string) error {
	named := false
	for _, kind := range kinds {
		if sp.Kind(kind).Field(field) == nil {
			continue
		}
		named = true
		if err := gate.CheckChangeField(c, q.source, kind, field); err != nil {
			return err
		}
	}
	if !named {
		return gate.CheckChangeField(c, q.source, kinds[0], field)
	}
	return nil
}

func (f *Feed) spec(source string) *spec.Spec {
	for _, s := range f.o.Sources {
		if s.Name == source {
			return s.Spec
		}
	}
	return nil
}

// begin finds the place the subscription begins at.
func (f *Feed) begin(ctx context.Context, s *subscription, pages bool) (err error) {
	if s.group, err = f.roleGroup(s.policy, s.query.source, s.caller.Role()); err != nil {
		return err
	}
	switch {
	case s.query.after != "":
		if s.start, err = s.group.place(s.query.after); err != nil {
			return err
		}
	case pages && !s.query.now:
		return nil // from the beginning
	}
	last, err := s.reader.last(ctx, s.start)
	switch {
	case err != nil:
		return err
	case s.query.after == "":
		s.start = last
	case s.start > last:
		return invalid("after=%s is beyond the end", understudy.Clip(s.query.after))
	}
	return nil
}

// wants reports whether a visible change passes the filters. A new or removed
// record passes every filter for fields. So does a change of unknown fields: a
// subscriber should rather look once too often than miss a change.
func (q *query) wants(seen *understudy.Change) bool {
	if len(q.kinds) > 0 && !slices.Contains(q.kinds, seen.Kind) {
		return false
	}
	if len(q.fields) == 0 || seen.Type != understudy.Changed || seen.Fields == "" {
		return true
	}
	for name := range seen.Fields.All() {
		for _, want := range q.fields {
			if name == want || inside(name, want) || inside(want, name) {
				return true
			}
		}
	}
	return false
}

// inside reports whether a dotted name lies in an object.
func inside(name, object string) bool {
	return len(name) > len(object) && name[len(object)] == '.' && name[:len(object)] == object
}
