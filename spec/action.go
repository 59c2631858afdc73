// This file describes actions: what people can do with a kind of record, or with one record.

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

// Action is a request that changes something upstream and that people may send.
type Action struct {
	Name    string `yaml:"name"`    // the word with which roles allow the action, such as send
	Title   string `yaml:"title"`   // the text of the action's button, such as: Send a message
	Done    string `yaml:"done"`    // the sentence shown after the upstream has performed the action
	Warning string `yaml:"warning"` // the sentence shown before the action is performed
	Method  string `yaml:"method"`  // the HTTP method: POST, PUT, PATCH or DELETE
	// Path is the path of one of the kind's lists, in which the action creates a record. If it is empty, the action
	// changes an existing record, at the path of the kind's first instance.
	Path     string         `yaml:"path"`
	Encoding string         `yaml:"encoding"` // the encoding of the request body: form or json
	Fields   []*ActionField `yaml:"fields"`   // the values that a person fills in
	// Cases say what is sent for which records. The first case that matches is used. If none matches, the
	// action is not offered for the record. Without cases it is always offered.
	Cases []ActionCase `yaml:"cases"`

	list *List
}

// ActionField is a value that a person fills in.
type ActionField struct {
	Name     string `yaml:"name"`     // the name of the upstream's parameter
	Field    string `yaml:"field"`    // the kind's field that contains the value after the action; the input has this field's class and title
	Own      bool   `yaml:"own"`      // the value is a phone number of the account itself
	Optional bool   `yaml:"optional"` // the value may stay empty, and then it is not sent
}

// ActionCase is what is sent for a record. A zero When matches every record.
type ActionCase struct {
	When State             `yaml:"when"`
	Set  map[string]string `yaml:"set"` // the values to send, by the names of the upstream's parameters
}

// The encodings of an action's body.
const (
	EncodingForm = "form"
	EncodingJSON = "json"
)

// Limits of the values that a person fills in.
const (
	maxActionFields = 20
	maxActionName   = 40 // maximum length of an action's name, in bytes
)

// CreationList returns the list in which the action creates a record, or nil if the action is about an existing record.
func (a *Action) CreationList() *List { return a.list }

// Action returns the kind's action with that name, or nil.
func (k *Kind) Action(name string) *Action {
	for _, a := range k.Actions {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Form returns the body and content type for the values that were filled in and those that a case sets. For
// DELETE both are empty.
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
		body, _ = json.Marshal(all) // no error is possible, because a map of strings is always valid JSON
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
			return addPath(fmt.Errorf("action %s appears twice", a.Name), "actions", i, "name")
		}
		if err := a.compile(k); err != nil {
			return addPath(fmt.Errorf("action %s: %w", a.Name, err), "actions", i)
		}
	}
	return nil
}

// compile fills in defaults and checks the action.
func (a *Action) compile(k *Kind) error {
	isOther := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }
	if a.Name == "" || len(a.Name) > maxActionName || strings.ContainsFunc(a.Name, isOther) {
		return fmt.Errorf("name %q: a name has only lower-case letters and dashes", a.Name)
	}
	if a.Title == "" {
		a.Title = strings.ToUpper(a.Name[:1]) + a.Name[1:] + " the " + k.Singular
	}
	a.Done = cmp.Or(a.Done, "Done: "+a.Title+".")
	a.Method = cmp.Or(a.Method, http.MethodPost)
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, a.Method) {
		return fmt.Errorf("method %q is not known; write POST, PUT, PATCH or DELETE", a.Method)
	}
	a.Encoding = cmp.Or(a.Encoding, EncodingForm)
	if a.Encoding != EncodingForm && a.Encoding != EncodingJSON {
		return fmt.Errorf("encoding %q is not known; write %s or %s", a.Encoding, EncodingForm, EncodingJSON)
	}
	if err := a.findPath(k); err != nil {
		return err
	}
	return a.checkFields(k)
}

// findPath checks Path and sets the list in which the action creates a record.
func (a *Action) findPath(k *Kind) error {
	if a.Path == "" {
		if len(k.Instances) == 0 || len(k.ID) == 0 {
			return fmt.Errorf("the kind has no instance that the action could change; give path, the path of one of its lists")
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
		return addPath(fmt.Errorf("path: %s is not the path of a list of the kind%s", a.Path, suggest.Hint(a.Path, known)), "path")
	case a.Method != http.MethodPost && a.Method != http.MethodPut:
		return fmt.Errorf("path: an action with a path creates a record, so its method is POST or PUT, not %s", a.Method)
	case len(a.Cases) > 1 || len(a.Cases) == 1 && a.Cases[0].When.Field != "":
		return fmt.Errorf("cases: an action with a path creates a record, so no field can be tested; write a single case without when")
	}
	a.list = k.Lists[i]
	return nil
}

// checkFields checks the action's fields and cases.
func (a *Action) checkFields(k *Kind) error {
	if len(a.Fields) > maxActionFields || len(a.Fields) > 0 && a.Method == http.MethodDelete {
		return fmt.Errorf("fields: an action has at most %d fields, and none if its method is DELETE", maxActionFields)
	}
	for i, f := range a.Fields {
		switch {
		case f.Name == "" || slices.ContainsFunc(a.Fields[:i], func(g *ActionField) bool { return g.Name == f.Name }):
			return fmt.Errorf("field %q: the name is empty, or another field has it", f.Name)
		case k.fields[f.Field] == nil:
			return addPath(fmt.Errorf("field %s: %w", f.Name, describeUnknown(f.Field, "among the kind's fields", k.fieldNames())),
				"fields", i, "field")
		case f.Own && k.fields[f.Field].Class != ClassPhone:
			return fmt.Errorf("field %s: own is only for phone numbers, and %s is not of class phone", f.Name, f.Field)
		}
	}
	for i, c := range a.Cases {
		for _, name := range append(slices.Clone(c.When.Set), c.When.Field) {
			if name != "" && k.fields[name] == nil {
				return addPath(fmt.Errorf("cases: %w", describeUnknown(name, "among the kind's fields", k.fieldNames())), "cases", i)
			}
		}
		if a.Method == http.MethodDelete && len(c.Set) > 0 {
			return fmt.Errorf("cases: a DELETE has no body; remove set")
		}
	}
	return nil
}
