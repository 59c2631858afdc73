// This file parses and checks the request of a subscriber.

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
	defaultPageChanges = 100  // the number of changes on a page if the parameter limit is missing
	maxPageChanges     = 1000 // the maximum of the parameter limit, which sets the number of changes on a page
	maxNames           = 50   // the maximum number of kinds or fields in one request
	maxQueryBytes      = 8 << 10
)

// query contains the parsed parameters of a request. They are not yet checked against the caller's rights.
type query struct {
	source  string
	after   string // the cursor after which the changes begin, or ""
	fromNow bool   // whether the client sent after=now, so that it gets only new changes
	kinds   []string
	fields  []string
	limit   int           // the maximum number of changes; 0 if the client did not set it
	wait    time.Duration // how long to wait for changes; negative if the client did not set it
}

func newInvalid(format string, args ...any) error {
	return fmt.Errorf("feed: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}

// readQuery parses the parameters. lastEvent is the header Last-Event-ID, which takes precedence over the parameter
// after. readQuery returns ErrInvalid for wrong parameters.
func readQuery(raw, lastEvent string) (query, error) {
	q := query{wait: -1}
	if len(raw) > maxQueryBytes {
		return q, newInvalid("the query is longer than %d bytes", maxQueryBytes)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, newInvalid("the query string cannot be parsed")
	}
	known := []string{"source", "after", "kind", "field", "limit", "wait"}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return q, newInvalid("unknown parameter %q%s", understudy.Clip(name), suggest.Hint(understudy.Clip(name), known))
		case name != "kind" && name != "field" && len(all) > 1:
			return q, newInvalid("%s appears %d times", name, len(all))
		case len(all) > maxNames:
			return q, newInvalid("more than %d of %s", maxNames, name)
		case slices.Contains(all, ""):
			return q, newInvalid("%s is empty", name)
		}
	}
	q.source, q.after, q.kinds, q.fields = values.Get("source"), values.Get("after"), values["kind"], values["field"]
	if lastEvent != "" {
		q.after = lastEvent
	}
	if q.after == "now" {
		q.after, q.fromNow = "", true
	}
	if len(q.after) > maxCursorBytes {
		return q, newInvalid("after is too long; write a value that the feed returned")
	}
	if text := values.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > maxPageChanges {
			return q, newInvalid("limit=%s is not allowed; write a number from 1 to %d", understudy.Clip(text), maxPageChanges)
		}
	}
	if text := values.Get("wait"); text != "" {
		if q.wait, err = understudy.ParseDuration(text); err != nil || q.wait < 0 {
			return q, newInvalid("wait=%s is not a time; write one such as 30s", understudy.Clip(text))
		}
	}
	return q, nil
}

// subscribe checks the caller and the parameters of a request.
func (f *Feed) subscribe(ctx context.Context, r *http.Request, pages bool) (*Subscription, error) {
	s := &Subscription{feed: f, policy: f.current.Load()}
	var err error
	if s.caller, err = jsonapi.IdentifyPerson(r, f.o.Token, s.policy.rules.Callers.IdentifyPerson); err != nil {
		return nil, err
	}
	if s.query, err = readQuery(r.URL.RawQuery, r.Header.Get("Last-Event-ID")); err != nil {
		return nil, err
	}
	if s.query.wait > f.o.Limits.Wait {
		return nil, newInvalid("wait=%v is too long; write at most %v", s.query.wait, f.o.Limits.Wait)
	}
	if err := f.findSource(s); err != nil {
		return nil, err
	}
	if err := s.query.checkAllowed(s.policy.rules.Gate, s.caller, spec.FindSource(f.o.Sources, s.query.source).Spec); err != nil {
		return nil, err
	}
	return s, f.findStart(ctx, s, pages)
}

// Identify returns the caller of a request: a person, or the local holder of the token. Its errors wrap ErrUnauthorized or ErrForbidden.
func (f *Feed) Identify(r *http.Request) (understudy.Caller, error) {
	return jsonapi.IdentifyPerson(r, f.o.Token, f.current.Load().rules.Callers.IdentifyPerson)
}

// findSource sets the source of a subscription: the source that the request names, the caller's source, or the only source.
func (f *Feed) findSource(s *Subscription) error {
	s.query.source = cmp.Or(s.query.source, s.caller.Source)
	if s.query.source == "" && len(f.names) == 1 {
		s.query.source = f.names[0]
	}
	if s.query.source == "" {
		return newInvalid("name a source; there is %s", strings.Join(f.names, ", "))
	}
	if s.reader = f.readers[s.query.source]; s.reader == nil {
		return newInvalid("no source is called %q%s", understudy.Clip(s.query.source), suggest.Hint(understudy.Clip(s.query.source), f.names))
	}
	return nil
}

// checkAllowed returns an error if the caller may not see one of the requested kinds or fields.
func (q *query) checkAllowed(gate *access.Gate, c understudy.Caller, sp *spec.Spec) error {
	seen := []string{}
	for _, k := range sp.Kinds {
		if gate.CanSee(c, q.source, k.Name) {
			seen = append(seen, k.Name)
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("feed: %w: your role (%s) can't see anything of %s", understudy.ErrForbidden, c.Role(), q.source)
	}
	for _, kind := range q.kinds {
		switch {
		case sp.Kind(kind) == nil:
			return newInvalid("%s has no kind %q%s", q.source, understudy.Clip(kind), suggest.Hint(understudy.Clip(kind), seen))
		case !slices.Contains(seen, kind):
			return fmt.Errorf("feed: %w: your role (%s) can't see %s", understudy.ErrForbidden, c.Role(), kind)
		}
	}
	kinds := q.kinds
	if len(kinds) == 0 {
		kinds = seen
	}
	for _, field := range q.fields {
		if err := q.checkField(gate, c, sp, kinds, field); err != nil {
			return err
		}
	}
	return nil
}

// checkField refuses a field that is hidden in one of the kinds that have the field. A field that no kind has is
// refused unless the caller sees fields beyond the spec.
func (q *query) checkField(gate *access.Gate, c understudy.Caller, sp *spec.Spec, kinds []string, field string) error {
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

// findStart sets the role group of a subscription, and the change at which the subscription begins.
func (f *Feed) findStart(ctx context.Context, s *Subscription, pages bool) (err error) {
	if s.group, err = f.findRoleGroup(s.policy, s.query.source, s.caller.Role()); err != nil {
		return err
	}
	switch {
	case s.query.after != "":
		if s.start, err = s.group.parseCursor(s.query.after); err != nil {
			return err
		}
	case pages && !s.query.fromNow:
		return nil // the subscription begins at the first change
	}
	last, err := s.reader.readLast(ctx, s.start)
	switch {
	case err != nil:
		return err
	case s.query.after == "":
		s.start = last
	case s.start > last:
		return newInvalid("after=%s is beyond the end", understudy.Clip(s.query.after))
	}
	return nil
}

// matchChange reports whether a change that the caller may see passes the filters. New and deleted records pass
// every filter for fields. Changes of unknown fields also pass, because one unnecessary change is better for a
// subscriber than a missed change.
func (q *query) matchChange(seen *understudy.Change) bool {
	if len(q.kinds) > 0 && !slices.Contains(q.kinds, seen.Kind) {
		return false
	}
	if len(q.fields) == 0 || seen.Type != understudy.Changed || seen.Fields == "" {
		return true
	}
	for name := range seen.Fields.All() {
		for _, want := range q.fields {
			if name == want || isInside(name, want) || isInside(want, name) {
				return true
			}
		}
	}
	return false
}

// isInside reports whether a dotted name is the name of a part of an object.
func isInside(name, object string) bool {
	return len(name) > len(object) && name[len(object)] == '.' && name[:len(object)] == object
}
