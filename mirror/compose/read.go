// Read: what a list request's path and paging parameters ask for.

package compose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// known refuses parameters that the spec does not name: what upstream makes of
// them is unknown.
func (l *listRequest) known() error {
	p := l.paging
	for _, one := range l.target.Query {
		if one.Name == "" || one.Name != p.Size && !p.Position(one.Name) &&
			l.target.List.Filter(one.Name) == nil {
			return fmt.Errorf("%w: %q is not a filter of this list", understudy.ErrInvalid, understudy.Clip(one.Name))
		}
	}
	return nil
}

// given is the parameter of that name; of several the last counts.
func (l *listRequest) given(name string) (p understudy.Param, there bool) {
	for _, one := range l.target.Query {
		if one.Name == name && name != "" {
			p, there = one, true
		}
	}
	return p, there
}

// under narrows the list to what one of the path's variables names.
func (l *List) under(i int) error {
	t, v := l.req.target, l.req.target.Vars[i]
	name := t.Spec.Shown[v.Name]
	_, own := t.Spec.Vars[v.Name]
	user := own && v.Value == l.req.src.User
	f := t.Kind.Field(name)
	root := slices.Contains(t.Spec.Roots.Vars, v.Name) && l.req.src.Covers(t.Root())
	switch {
	case root && t.Kind.Root != "":
		l.seek.Parent = t.Root()
		return nil
	case f != nil && user && len(l.req.src.Roots) == 0:
		l.test(f.Name, same(v.Value)) // nearly all that is held: no use in looking it up
	case f != nil:
		l.is(f.Name, v.Value)
	case i+1 < len(t.Vars): // the record that the next variable names tells
	case !user: // the user's own are kept by themselves (Kind.Untold)
		return fmt.Errorf("%w: records of this list do not tell their %s", understudy.ErrInvalid, v.Name)
	}
	if f != nil && f.Name == t.Kind.Parent {
		l.seek.Parent = v.Value
	}
	if user || root { // that it is there is known by the walks of its lists
		return nil
	}
	return l.above(i, f)
}

// above makes sure that the record a variable names is there, and lies under
// those that the variables before it name.
func (l *List) above(i int, f *spec.Field) error {
	t, v := l.req.target, l.req.target.Vars[i]
	kind := l.req.parentKind(v.Name, f)
	if kind == nil {
		return fmt.Errorf("%w: the spec does not say what %s names", understudy.ErrInvalid, v.Name)
	}
	var rec *understudy.Record
	if l.req.o.Held != nil {
		rec = l.req.o.Held(kind.Name, v.Value)
	}
	if rec == nil {
		return fmt.Errorf("%w: %s is not held, so that nobody knows whether it is there", understudy.ErrInvalid, understudy.Clip(v.Value))
	}
	for _, before := range t.Vars[:i] {
		name := t.Spec.Shown[before.Name]
		if kind.Field(name) == nil || !find(kind, rec.Body, name).Is(before.Value) {
			return fmt.Errorf("%w: %s does not tell that it lies under %s", understudy.ErrInvalid,
				understudy.Clip(v.Value), understudy.Clip(before.Value))
		}
	}
	// What goes with its parent is still held when that has ended.
	if t.Kind.Retention.WithParent && rec.Final && f != nil && f.Name == t.Kind.Parent {
		l.none = true
	}
	return nil
}

// parentKind is the kind of the record that a variable names: what the field
// that shows it links to, in this kind or another.
func (l *listRequest) parentKind(variable string, f *spec.Field) *spec.Kind {
	sp := l.target.Spec
	if f == nil {
		for _, k := range sp.Kinds {
			if f = k.Field(sp.Shown[variable]); f != nil && f.Link != "" {
				break
			}
		}
	}
	if f == nil {
		return nil
	}
	return sp.Kind(f.Link)
}

// readPlace reads where in the list the page stands.
func (l *List) readPlace() error {
	p := l.req.paging
	if p.OnePage() || p.Size == "" {
		l.place.size = int64(max(p.Max, 1000))
	} else if err := l.readSize(); err != nil {
		return err
	}
	if one, there := l.req.given(p.Page); there && !p.OnePage() {
		n, ok := number(one.Value)
		if !ok || n < int64(p.First) {
			return l.req.refuse("page")
		}
		l.place.page = n - int64(p.First)
	}
	for _, name := range p.Tokens {
		switch one, _ := l.req.given(name); {
		case one.Value == "":
		case name != p.TokenParam() && name != p.Back:
			return fmt.Errorf("%w: where %s leads nobody knows", understudy.ErrInvalid, understudy.Clip(name))
		case l.place.token != "":
			return fmt.Errorf("%w: which of two page tokens counts nobody knows", understudy.ErrInvalid)
		default:
			l.place.token, l.place.upward = one.Value, name == p.Back
		}
	}
	if l.place.token != "" {
		return l.readToken()
	}
	switch {
	case l.place.page > 0 && p.Slides() && !p.Counts(l.req.target.Query):
		return fmt.Errorf("%w: nobody knows which rows the page of that number has", understudy.ErrInvalid)
	case p.Style == "offset":
		l.place.skip = l.place.page
	case p.Slides(), l.req.target.Spec.Quirks.Alone == spec.QuirkCounts:
		l.place.skip = l.place.page * l.place.size
	}
	return nil
}

func (l *List) readSize() error {
	p, odd := l.req.paging, &l.req.target.Spec.Quirks
	if l.place.size = int64(p.Default); l.place.size <= 0 {
		l.place.size = 1000
	}
	one, there := l.req.given(p.Size)
	if !there {
		return nil
	}
	n, ok := number(one.Value)
	switch {
	case (!ok || n == 0) && odd.Size == spec.QuirkDefault:
		return nil
	case !ok || n == 0:
		return l.req.refuse("size")
	case p.Max > 0 && n > int64(p.Max):
		if odd.Above == spec.QuirkRefused {
			return l.req.refuse("size_above")
		}
		n = int64(p.Max)
	}
	l.place.size = n
	return nil
}

// number reads decimal digits; what is larger than 31 bits is as large as they
// get.
func number(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		n = math.MaxInt32
	}
	return n, true
}

// readToken finds the record a token names. The page after a record is named
// by the spec's form; with its first A as a B it is the page before one, as
// upstreams of that form write it.
func (l *List) readToken() error {
	id, back, ok := l.place.form.ID(l.place.token)
	l.place.back = back || l.place.upward
	switch k := l.req.target.Kind; {
	case l.place.form.Own && !ok:
		return fmt.Errorf("%w: the page token is one of upstream's own", understudy.ErrInvalid)
	case !ok, len(k.Prefixes) > 0 && len(k.ID) == 1 && !k.HasPrefix(id):
		return l.req.refuse("token")
	}
	l.place.start = id
	return l.startsHere()
}

// startsHere refuses a token whose record is known to lie under another account.
func (l *List) startsHere() error {
	t := l.req.target
	var rec *understudy.Record
	if t.Kind.UnscopedVar() != "" {
		if l.req.o.Held != nil {
			rec = l.req.o.Held(t.Kind.Name, l.place.start)
		}
		switch {
		case rec == nil:
			return fmt.Errorf("%w: nobody knows whose record the page token names", understudy.ErrInvalid)
		case strings.HasSuffix(rec.Shape, spec.ForeignShape):
			return l.req.refuse("token")
		}
	}
	for _, v := range t.Vars {
		name := t.Spec.Shown[v.Name]
		if _, own := t.Spec.Vars[v.Name]; !own || t.Kind.Field(name) == nil || l.req.o.Held == nil {
			continue
		}
		if rec == nil {
			if rec = l.req.o.Held(t.Kind.Name, l.place.start); rec == nil {
				return nil
			}
		}
		if !find(t.Kind, rec.Body, name).Is(v.Value) {
			return l.req.refuse("token")
		}
	}
	return nil
}

// Astray is what upstream says of a token that names no record of the list: for
// who knows that it never had the record Start names. ErrInvalid when the spec
// does not tell.
func (l *List) Astray() error { return l.req.refuse("token") }
