// Action: something that people do with a kind of record, or with one record.

package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy/kit/suggest"
)

// Action is one request that changes something upstream, as people may send it.
type Action struct {
	Name    string `yaml:"name"`    // one word, by which roles permit it: send
	Title   string `yaml:"title"`   // of its button: Send a message
	Done    string `yaml:"done"`    // what is said when upstream has done it, a sentence
	Warning string `yaml:"warning"` // what to know before it is done, a sentence
	Method  string `yaml:"method"`  // POST, PUT, PATCH or DELETE
	// Path is one of the kind's lists: the action makes a record there. "": the action is
	// about a record, at the kind's first instance.
	Path     string         `yaml:"path"`
	Encoding string         `yaml:"encoding"` // of the body: form or json
	Fields   []*ActionField `yaml:"fields"`   // what a person fills in
	// Cases say what is sent for which records; the first that holds counts, and of a
	// record for which none holds the action is not offered. None at all: it always is.
	Cases []ActionCase `yaml:"cases"`

	list *List
}

// ActionField is one value that a person fills in.
type ActionField struct {
	Name     string `yaml:"name"`     // upstream's parameter
	Field    string `yaml:"field"`    // the kind's field that shows it afterwards; its class and title are those of the input
	Own      bool   `yaml:"own"`      // one of our own numbers
	Optional bool   `yaml:"optional"` // it may stay empty, and is not sent then
}

// ActionCase is what is sent for a record. A zero When always holds.
type ActionCase struct {
	When State             `yaml:"when"`
	Set  map[string]string `yaml:"set"` // values by upstream's parameters
}

// The encodings of an action's body.
const (
	EncodingForm = "form"
	EncodingJSON = "json"
)

// Bounds of what a person fills in.
const (
	maxActionFields = 20
	maxActionName   = 40 // bytes
)

// Makes is the list in which the action makes a record; nil: it is about a record.
func (a *Action) Makes() *List { return a.list }

// Action is the kind's action of a name, nil when there is none.
func (k *Kind) Action(name string) *Action {
	for _, a := range k.Actions {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Form is the body and its content type for what was filled in and what a case sets.
// An action of method DELETE has none.
func (a *Action) Form(filled, set map[string]string) (body []byte, contentType string) {
	all := map[string]string{}
	for _, f := range a.Fields {
		if v := filled[f.Name]; v != "" || !f.Optional {
			all[f.Name] = v
		}
	}
	maps.Copy(all, set)
	switch {
	case a.Method == http.MethodDelete:
		return nil, ""
	case a.Encoding == EncodingJSON:
		body, _ = json.Marshal(all) // texts by texts always marshal
		return body, "application/json"
	}
	form := url.Values{}
	for name, v := range all {
		form.Set(name, v)
	}
	return []byte(form.Encode()), "application/x-www-form-urlencoded"
}

// compileActions fills in defaults and checks the kind's actions.
func (k *Kind) compileActions() error {
	for i, a := range k.Actions {
		if slices.ContainsFunc(k.Actions[:i], func(b *Action) bool { return b.Name == a.Name }) {
			return in(fmt.Errorf("action %s is there twice", a.Name), "actions", i, "name")
		}
		if err := a.compile(k); err != nil {
			return in(fmt.Errorf("action %s: %w", a.Name, err), "actions", i)
		}
	}
	return nil
}

func (a *Action) compile(k *Kind) error {
	isOther := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }
	if a.Name == "" || len(a.Name) > maxActionName || strings.ContainsFunc(a.Name, isOther) {
		return fmt.Errorf("name %q: want lower-case letters and dashes", a.Name)
	}
	if a.Title == "" {
		a.Title = strings.ToUpper(a.Name[:1]) + a.Name[1:] + " the " + k.One
	}
	a.Done = cmp.Or(a.Done, "Done: "+a.Title+".")
	a.Method = cmp.Or(a.Method, http.MethodPost)
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, a.Method) {
		return fmt.Errorf("method %q: want POST, PUT, PATCH or DELETE", a.Method)
	}
	a.Encoding = cmp.Or(a.Encoding, EncodingForm)
	if a.Encoding != EncodingForm && a.Encoding != EncodingJSON {
		return fmt.Errorf("encoding %q: want %s or %s", a.Encoding, EncodingForm, EncodingJSON)
	}
	if err := a.place(k); err != nil {
		return err
	}
	return a.checkFields(k)
}

// place finds where the action is sent.
func (a *Action) place(k *Kind) error {
	if a.Path == "" {
		if len(k.Instances) == 0 || len(k.ID) == 0 {
			return fmt.Errorf("the kind has no instances; give the path of one of its lists")
		}
		return nil
	}
	i := slices.IndexFunc(k.Lists, func(l *List) bool { return l.Path == a.Path })
	switch {
	case i < 0:
		var known []string
		for _, l := range k.Lists {
			known = append(known, l.Path)
		}
		return in(fmt.Errorf("path %s is none of the kind's lists%s", a.Path, suggest.Hint(a.Path, known)), "path")
	case a.Method != http.MethodPost && a.Method != http.MethodPut:
		return fmt.Errorf("path: a record is made by POST or PUT, not by %s", a.Method)
	case len(a.Cases) > 1 || len(a.Cases) == 1 && a.Cases[0].When.Field != "":
		return fmt.Errorf("cases: there is no record yet whose fields they could look at")
	}
	a.list = k.Lists[i]
	return nil
}

func (a *Action) checkFields(k *Kind) error {
	if len(a.Fields) > maxActionFields || len(a.Fields) > 0 && a.Method == http.MethodDelete {
		return fmt.Errorf("fields: want at most %d, and none with DELETE", maxActionFields)
	}
	for i, f := range a.Fields {
		switch {
		case f.Name == "" || slices.ContainsFunc(a.Fields[:i], func(g *ActionField) bool { return g.Name == f.Name }):
			return fmt.Errorf("field %q: empty or there twice", f.Name)
		case k.fields[f.Field] == nil:
			return in(fmt.Errorf("field %s: %w", f.Name, none(f.Field, "among the kind's fields", k.fieldNames())), "fields", i, "field")
		case f.Own && k.fields[f.Field].Class != ClassPhone:
			return fmt.Errorf("field %s: own: %s is not of class phone", f.Name, f.Field)
		}
	}
	for i, c := range a.Cases {
		for _, name := range append(slices.Clone(c.When.Set), c.When.Field) {
			if name != "" && k.fields[name] == nil {
				return in(fmt.Errorf("cases: %w", none(name, "among the kind's fields", k.fieldNames())), "cases", i)
			}
		}
		if a.Method == http.MethodDelete && len(c.Set) > 0 {
			return fmt.Errorf("cases: set: DELETE has no body")
		}
	}
	return nil
}
