// Compile: checks a spec and prepares it for matching requests.

package spec

import (
	"cmp"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
)

// Compile fills in defaults and checks that every name in the spec refers to something. Call it once, before
// any other method. The error names the wrong part of the spec.
func (s *Spec) Compile() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("spec %s: %w", s.Name, err)
	}
	if err := s.Roots.addFields(s); err != nil {
		return fmt.Errorf("spec %s: roots: %w", s.Name, err)
	}
	s.kinds = make(map[string]*Kind, len(s.Kinds))
	for i, k := range s.Kinds {
		if s.kinds[k.Name] != nil {
			return addPath(fmt.Errorf("spec %s: kind %s appears twice", s.Name, k.Name), "kinds", i, "name")
		}
		s.kinds[k.Name] = k
		if err := s.compileKind(k); err != nil {
			return addPath(fmt.Errorf("spec %s: kind %s: %w", s.Name, k.Name, err), "kinds", i)
		}
	}
	if err := compilePasses(s); err != nil {
		return err
	}
	if err := s.Roots.check(s); err != nil {
		return addPath(fmt.Errorf("spec %s: roots: %w", s.Name, err), "roots")
	}
	if err := s.checkAliases(); err != nil {
		return fmt.Errorf("spec %s: %w", s.Name, err)
	}
	if err := s.checkSearches(); err != nil {
		return fmt.Errorf("spec %s: %w", s.Name, err)
	}
	return s.checkLinks()
}

// check checks everything except the kinds, and fills in defaults.
func (s *Spec) check() error {
	if s.Name == "" || strings.ContainsFunc(s.Name, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') }) {
		return fmt.Errorf("name %q: a name has only lower-case letters, digits and dashes", s.Name)
	}
	s.Title, s.ContentType = cmp.Or(s.Title, s.Name), cmp.Or(s.ContentType, jsonType)
	kind, params, err := mime.ParseMediaType(s.ContentType)
	if err != nil || !strings.Contains(kind, "/") || !strings.EqualFold(cmp.Or(params["charset"], "utf-8"), "utf-8") {
		return fmt.Errorf("content_type %q is not a media type in UTF-8; write one such as application/vnd.api+json", s.ContentType)
	}
	if len(s.Hosts) == 0 {
		return fmt.Errorf("hosts is empty; write at least one host")
	}
	for i, h := range s.Hosts {
		u, err := url.Parse(h.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("hosts[%d]: url %q is not a URL; write https://HOST or http://HOST", i, h.URL)
		}
		if len(h.Prefixes) == 0 {
			s.Hosts[i].Prefixes = []string{"/"}
		}
	}
	if err := s.Headers.check(); err != nil {
		return err
	}
	if err := s.checkAuth(); err != nil {
		return err
	}
	if err := s.Limits.check(&s.Headers); err != nil {
		return err
	}
	if err := s.Hook.check(); err != nil {
		return err
	}
	if err := checkSnippets(s.Snippets); err != nil {
		return err
	}
	if err := s.Quirks.check(); err != nil {
		return err
	}
	if err := s.Paging.check("paging"); err != nil {
		return addPath(err, "paging")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pagings)) {
		p := s.Pagings[name]
		if p == nil {
			return fmt.Errorf("pagings.%s is empty", name)
		}
		if err := p.check("pagings." + name); err != nil {
			return addPath(err, "pagings", name)
		}
	}
	return nil
}

// checkAuth checks that no header field with a credential has another meaning in the spec.
func (s *Spec) checkAuth() error {
	carriers, err := s.Auth.Check()
	if err != nil {
		return err
	}
	s.credentialParams = carriers.Params
	h := &s.Headers
	for _, name := range carriers.Headers {
		if err := checkHeader("auth", name); err != nil {
			return err
		}
		if _, key := h.Key[name]; key || h.Send[name] != "" || slices.Contains(h.Write, name) || slices.Contains(h.Back, name) {
			return fmt.Errorf("auth: the header %s has the credential, so it cannot be under headers, too", name)
		}
	}
	return nil
}

// compileKind fills in a kind's defaults, checks it, and adds its paths to the routes.
func (s *Spec) compileKind(k *Kind) (err error) {
	if k.Name == "" || strings.ContainsAny(k.Name, "/~?. ") {
		return fmt.Errorf("name %q: write one word without slash, tilde, question mark and dot", k.Name)
	}
	k.Title = cmp.Or(k.Title, strings.ReplaceAll(k.Name, "_", " "))
	k.Singular = cmp.Or(k.Singular, strings.TrimSuffix(k.Title, "s"))
	if err := checkFields(k.Fields); err != nil {
		return addPath(err, "fields")
	}
	k.fields = make(map[string]*Field, len(k.Fields))
	for _, f := range k.Fields {
		k.fields[f.Name] = f
	}
	if err := k.checkNames(); err != nil {
		return err
	}
	if err := k.checkSamples(); err != nil {
		return err
	}
	for i, l := range k.Lists {
		l.Shape = cmp.Or(l.Shape, k.Name)
		if l.Complete == nil {
			l.Complete = s.CompleteLists
		}
		if _, ok := l.UnfilteredQuery(); !ok {
			if l.IsComplete() && l.Complete != s.CompleteLists {
				return fmt.Errorf("list %s: whole: a filter is required, or leaves records out by default; remove whole, or give the filter's value "+
					"for all records as none", l.Path)
			}
			l.Complete = new(bool)
		}
		if l.Paging != "" && s.Pagings[l.Paging] == nil {
			known := slices.Sorted(maps.Keys(s.Pagings))
			return addPath(fmt.Errorf("list %s: paging %w", l.Path, describeUnknown(l.Paging, "among the spec's pagings", known)),
				"lists", i, "paging")
		}
		if err := l.Posted.check(l.Path); err != nil {
			return addPath(err, "lists", i)
		}
		if l.template, err = s.routes.addPosted(l.Path, route{kind: k, list: l}); err != nil {
			return addPath(err, "lists", i, "path")
		}
	}
	if err := k.checkRows(); err != nil {
		return err
	}
	s.findUnscopedVar(k)
	for i, one := range k.Instances {
		one.Shape = cmp.Or(one.Shape, k.Name)
		switch f := k.fields[one.Address]; {
		case one.Address == "":
		case f == nil || len(k.ID) == 0:
			return addPath(fmt.Errorf("instance %s: address: %w", one.Path, describeUnknown(one.Address,
				"a field of a kind with an id", k.fieldNames())),
				"instances", i, "address")
		case !f.AbsoluteURL:
			return addPath(fmt.Errorf("instance %s: address: field %s has no URL of the API; the field needs absolute: true", one.Path, f.Name),
				"instances", i, "address")
		}
		if len(one.ID) != len(k.ID) && (one.Address == "" || len(one.ID) > 0) {
			return addPath(fmt.Errorf("instance %s: id names %d path variables, but the kind's id has %d fields; name one variable for each field",
				one.Path, len(one.ID), len(k.ID)), "instances", i)
		}
		if err := one.checkAnswer(); err != nil {
			return addPath(fmt.Errorf("instance %s: answer: %w", one.Path, err), "instances", i)
		}
		if err := one.Posted.check(one.Path); err != nil {
			return addPath(err, "instances", i)
		}
		if one.template, err = s.routes.addPosted(one.Path, route{kind: k, instance: one}); err != nil {
			return addPath(err, "instances", i)
		}
	}
	if err := k.ChangingWrites.compile(); err != nil {
		return addPath(err, "writes")
	}
	if err := k.compileActions(); err != nil {
		return err
	}
	return s.compileMedia(k)
}

// compileMedia adds a kind's media paths to the routes.
func (s *Spec) compileMedia(k *Kind) (err error) {
	for i, m := range k.Media {
		if f := k.fields[m.Field]; f == nil || f.Type != TypeMedia {
			return addPath(fmt.Errorf("media %s: %w", m.Path, describeUnknown(m.Field, "a field of type media", k.fieldNames())),
				"media", i, "field")
		}
		if len(m.ID) != len(k.ID) || len(m.ID) == 0 {
			return addPath(fmt.Errorf("media %s: id names %d path variables, but the kind's id has %d fields; name one variable for each field",
				m.Path, len(m.ID), len(k.ID)), "media", i)
		}
		if m.template, err = s.routes.add(m.Path, route{kind: k, media: m}); err != nil {
			return addPath(err, "media", i)
		}
	}
	return nil
}

// The types and classes that a field may have.
var (
	fieldTypes = []string{
		TypeText, TypeInt, TypeDecimal, TypeBool, TypeRFC2822, TypeISO, TypeEpoch, TypeMillis, TypeDate, TypeSelect, TypeMap, TypeCode, TypeMedia,
		TypeLatitude, TypeLongitude,
	}
	fieldClasses = []string{"", ClassPhone, ClassBody, ClassPrice, ClassURL, ClassName, ClassSecret}
	fieldShows   = []string{"", ShowSeconds, ShowMillis, ShowCost, ShowMinor, ShowForm, ShowDirection}
)

// checkShow checks that Show fits the field's type and class.
func (f *Field) checkShow() error {
	number := f.Type == TypeInt || f.Type == TypeDecimal
	switch f.Show {
	case ShowSeconds, ShowMillis:
		if !number {
			return fmt.Errorf("field %s: show: %s is only for numbers; the field needs type: int or decimal", f.Name, f.Show)
		}
	case ShowCost:
		if f.Type != TypeDecimal || f.Class != ClassPrice {
			return fmt.Errorf("field %s: show: cost is only for prices; the field needs type: decimal and class: price", f.Name)
		}
	case ShowMinor:
		if !number || f.Class != ClassPrice {
			return fmt.Errorf("field %s: show: minor is only for prices; the field needs type: int or decimal, and class: price", f.Name)
		}
	case ShowForm, ShowDirection:
		if f.Type != TypeText && f.Type != TypeSelect {
			return fmt.Errorf("field %s: show: %s is only for texts; the field needs type: text or select", f.Name, f.Show)
		}
	default:
		if !slices.Contains(fieldShows, f.Show) {
			return fmt.Errorf("field %s: unknown show %q%s", f.Name, f.Show, suggest.Hint(f.Show, fieldShows))
		}
	}
	return nil
}

// checkFields checks names, types and classes of fields, and that the fields they refer to exist.
func checkFields(fields []*Field) error {
	seen := map[string]bool{}
	for i, f := range fields {
		if f.Name == "" || seen[f.Name] {
			return addPath(fmt.Errorf("field %q: the name is empty, or another field has it", f.Name), i, "name")
		}
		seen[f.Name] = true
		f.Type = cmp.Or(f.Type, TypeText)
		if !slices.Contains(fieldTypes, f.Type) {
			return addPath(fmt.Errorf("field %s: unknown type %q%s", f.Name, f.Type, suggest.Hint(f.Type, fieldTypes)), i, "type")
		}
		if !slices.Contains(fieldClasses, f.Class) {
			return addPath(fmt.Errorf("field %s: unknown class %q%s", f.Name, f.Class, suggest.Hint(f.Class, fieldClasses)), i, "class")
		}
		if err := f.checkShow(); err != nil {
			return addPath(err, i, "show")
		}
	}
	known := slices.Sorted(maps.Keys(seen))
	for i, f := range fields {
		if f.DerivedFrom != "" && !seen[f.DerivedFrom] {
			return addPath(fmt.Errorf("field %s: from %w", f.Name, describeUnknown(f.DerivedFrom, "a field", known)), i, "from")
		}
		if f.Reveals != "" && !seen[f.Reveals] {
			return addPath(fmt.Errorf("field %s: tells %w", f.Name, describeUnknown(f.Reveals, "a field", known)), i, "tells")
		}
	}
	return nil
}

// checkRetention checks that the spec has what is needed to find the records that the upstream forgets.
func (k *Kind) checkRetention() error {
	switch f := k.Retention; {
	case f.Days < 0:
		return fmt.Errorf("forgets.days: %d is negative; write a number of days", f.Days)
	case f.Days > 0 && k.Clock == "":
		return fmt.Errorf("forgets.days: the kind has no clock, so the age of its records is not known; add clock or remove days")
	case f.Unlisted && f.Days == 0:
		return fmt.Errorf("forgets.unlisted has no effect without forgets.days; add days or remove unlisted")
	case f.WithParent && k.Parent == "":
		return fmt.Errorf("forgets.with_parent: the kind has no parent; add parent or remove with_parent")
	case f.WithParent && (k.fields[k.Parent].Link == "" || k.fields[k.Parent].Link == AnyKind):
		return fmt.Errorf("forgets.with_parent: the kind of the parent is not known; add link with its name to field %s", k.Parent)
	}
	return nil
}

// HookForm is the hook style that signs a form together with its URL.
const HookForm = "url-form-hmac-sha1"

// check checks that callbacks can be verified and name a parameter with an id.
func (h *Hook) check() error {
	switch {
	case h.Style == "" && h.Header == "" && len(h.IDs) == 0:
		return nil
	case h.Style != HookForm:
		return fmt.Errorf("hook.style %q is not known; write %s", h.Style, HookForm)
	case h.Header == "" || strings.ContainsFunc(h.Header, func(r rune) bool {
		return r != '-' && !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}):
		return fmt.Errorf("hook.header %q is not the name of a header", h.Header)
	case len(h.IDs) == 0 || slices.Contains(h.IDs, ""):
		return fmt.Errorf("hook.ids: write at least one parameter, and no empty one")
	}
	return nil
}

// add parses a path of the spec and adds it to the routes.
func (all *routes) add(path string, r route) (t Template, err error) {
	if t, err = ParseTemplate(path); err != nil {
		return t, err
	}
	for _, name := range r.ids() {
		if !t.Has(name) {
			return t, fmt.Errorf("path %s has no variable {%s}", path, name)
		}
	}
	r.template = t
	*all = append(*all, r)
	return t, nil
}

// checkLinks checks that links name existing kinds, once all kinds are known. It also sorts the routes, so that
// the route with fewer variables is tried first.
func (s *Spec) checkLinks() error {
	for variable, field := range s.VarFields {
		if !slices.ContainsFunc(s.Kinds, func(k *Kind) bool { return k.fields[field] != nil }) {
			return addPath(fmt.Errorf("spec %s: shown.%s: no kind has a field %q", s.Name, variable, field), "shown", variable)
		}
	}
	for i, k := range s.Kinds {
		for j, f := range k.Fields {
			if f.Link != "" && f.Link != AnyKind && s.kinds[f.Link] == nil {
				return addPath(fmt.Errorf("spec %s: kind %s: field %s: link %w", s.Name, k.Name, f.Name, describeUnknown(f.Link,
					"a kind", s.KindNames())),
					"kinds", i, "fields", j, "link")
			}
		}
	}
	slices.SortStableFunc(s.routes, func(a, b route) int { return a.template.variableWeight() - b.template.variableWeight() })
	return nil
}

// BuildURL returns the URL of a key's request. It uses base if base is not empty, and otherwise the host that
// serves the path.
func (s *Spec) BuildURL(k understudy.Key, base string) (string, error) {
	if base != "" {
		return strings.TrimSuffix(base, "/") + k.RequestURI(), nil
	}
	if at, ok := s.HostURL(k.Path()); ok {
		return at + k.RequestURI(), nil
	}
	return "", fmt.Errorf("%w: no host of %s serves %s", understudy.ErrInvalid, s.Name, understudy.Clip(k.Path()))
}

// HostURL returns the URL of the host that serves a path, without a trailing slash. ok is false if no host does.
func (s *Spec) HostURL(path string) (url string, ok bool) {
	for _, h := range s.Hosts {
		for _, prefix := range h.Prefixes {
			rest, ok := strings.CutPrefix(path, prefix)
			if ok && (strings.HasSuffix(prefix, "/") || rest == "" || rest[0] == '/') {
				return strings.TrimSuffix(h.URL, "/"), true
			}
		}
	}
	return "", false
}
