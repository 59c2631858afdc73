// This file reads settings.txt. It has the default, the bounds and the meaning of each setting, and says whether
// the setting can change at run time.

package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed settings.txt
var tableText string

// setting is a line of settings.txt.
type setting struct {
	name         string // the path of the setting, such as sources.NAME.rate and credentials[].name
	oldName      string // the last word of the setting's old name; "" if it has no old name
	shownDefault string // the default as the documents show it, as a value or in words
	fallback     string // the value of a setting that is missing or zero; "" if the code that reads the setting decides
	bounds       string // the smallest and the largest value, such as 1..256
	isLive       bool   // whether a change of the setting applies without a restart
	group        string // the table in the documents: basic, access, tuning or limits
	meaning      string
}

// table returns the settings that settings.txt lists.
var table = sync.OnceValue(func() (all []*setting) {
	for line := range strings.Lines(tableText) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if line[0] == '#' || len(cells) < 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		s := &setting{name: cells[0], shownDefault: cells[1], bounds: cells[2], isLive: cells[3] == "live", group: cells[4],
			meaning: cells[5]}
		if name, was, ok := strings.Cut(s.name, " ("); ok {
			s.name, s.oldName = name, strings.TrimSuffix(was, ")")
		}
		if value, ok := strings.CutPrefix(s.shownDefault, "= "); ok {
			s.shownDefault, s.fallback = "`"+value+"`", value
		}
		all = append(all, s)
	}
	return all
})

// findSetting returns the setting with a path, or an empty setting if there is none.
func findSetting(name string) *setting {
	i := slices.IndexFunc(table(), func(s *setting) bool { return s.name == name })
	if i < 0 {
		return &setting{}
	}
	return table()[i]
}

// isLive reports whether a change of a setting, or of any setting below it, applies without a restart.
func isLive(name string) bool {
	any, all := false, true
	for _, s := range table() {
		if rest, under := strings.CutPrefix(s.name, name); under && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			any, all = true, all && s.isLive
		}
	}
	return any && all
}

// visitSettings calls visit for a value of the settings. While visit returns true, it also calls visit for the values below
// it. path is the value's path in errors, such as sources.api.pool[0]; name is the path in the table.
func visitSettings(v reflect.Value, path, name string, visit func(path, name string, v reflect.Value) bool) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !visit(path, name, v) || isUnmarshaler(v.Type()):
	case v.Kind() == reflect.Struct:
		for field, one := range v.Fields() {
			word := "." + field.Tag.Get("yaml")
			if word == ".-" {
				continue
			}
			visitSettings(one, strings.TrimPrefix(path+word, "."), strings.TrimPrefix(name+word, "."), visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			under := fmt.Sprintf("%s[%d]", path, i)
			if one := reflect.Indirect(v.Index(i)); one.Kind() == reflect.Struct && one.FieldByName("Name").IsValid() {
				under = path + ": " + one.FieldByName("Name").String()
			}
			visitSettings(v.Index(i), under, name+"[]", visit)
		}
	case v.Kind() == reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			visitSettings(v.MapIndex(key), path+"."+key.String(), name+".NAME", visit)
		}
	}
}

// fillDefaults sets the settings below a name to their defaults if they are missing or zero.
func fillDefaults(settings any, name string) {
	visitSettings(reflect.ValueOf(settings), name, name, func(_, name string, v reflect.Value) bool {
		if s := findSetting(name); s.fallback != "" && v.IsZero() {
			v.Set(parseValue(s.fallback, v.Type()))
		}
		return true
	})
}

// FillFile returns the text of a settings file with each setting that it leaves out and that has a default, marked by a comment. ${NAME}
// stays as it is, so the text contains no value of the environment. Errors are those of Parse.
func FillFile(data []byte, lookup func(string) (string, bool)) ([]byte, error) {
	c, err := Parse(data, lookup)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	root := doc.Content[0]
	if _, err := replaceOldNames(root); err != nil {
		return nil, err
	}
	visitSettings(reflect.ValueOf(c), "", "", func(path, name string, v reflect.Value) bool {
		if s := findSetting(name); s.fallback != "" && !strings.Contains(name, "[]") {
			text := s.fallback
			if !reflect.DeepEqual(v.Interface(), parseValue(text, v.Type()).Interface()) { // some defaults depend on other settings
				text = fmt.Sprint(v.Interface())
			}
			addDefault(root, strings.Split(path, "."), text)
		}
		return true
	})
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err = e.Encode(&doc)
	return out.Bytes(), errors.Join(err, e.Close())
}

// addDefault adds a setting to a block of the document, unless the block has it.
func addDefault(block *yaml.Node, path []string, text string) {
	i := 0
	for i < len(block.Content) && block.Content[i].Value != path[0] {
		i += 2
	}
	switch {
	case i == len(block.Content) && len(path) > 1:
		block.Content = append(block.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, &yaml.Node{Kind: yaml.MappingNode})
	case i == len(block.Content):
		value := &yaml.Node{Kind: yaml.ScalarNode, Value: text, LineComment: "# default"}
		block.Content = append(block.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, value)
	}
	if under := block.Content[i+1]; len(path) > 1 && (under.Kind == yaml.MappingNode || under.Tag == "!!null") {
		under.Kind, under.Tag, under.Value = yaml.MappingNode, "", ""
		addDefault(under, path[1:], text)
	}
	block.Style = 0 // not in one line
}

// parseValue parses the text of a value as the settings file would. The text "" is the zero value.
func parseValue(text string, t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if err := yaml.Unmarshal([]byte(text), v.Interface()); err != nil {
		panic(fmt.Sprintf("config: settings.txt: %q: %v", text, err))
	}
	return v.Elem()
}

// check returns an error if a value of the setting is out of bounds.
func (s *setting) check(v reflect.Value) error {
	bounds, why, _ := strings.Cut(s.bounds, ",")
	for _, pair := range strings.Fields(bounds) {
		low, high, _ := strings.Cut(pair, "..")
		least, most := parseValue(low, v.Type()), parseValue(high, v.Type())
		isLow, isHigh := low != "" && number(v) < number(least), high != "" && number(v) > number(most)
		switch _, isTime := v.Interface().(Duration); {
		case !isLow && !isHigh:
		case isTime && isLow:
			return fmt.Errorf("%v is too short; write at least %s", v, low)
		case isTime && why != "":
			return fmt.Errorf("%v is too long; write at most %v,%s", v, most, why)
		case isTime:
			return fmt.Errorf("%v is too long; write at most %v", v, most)
		case high == "":
			return fmt.Errorf("%v is negative; write 0 or more", v)
		case low == "":
			return fmt.Errorf("%v is too high; write at most %v", v, most)
		default:
			return fmt.Errorf("%v is out of range; write a number from %v to %v", v, least, most)
		}
	}
	return nil
}

func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// NeedRestart returns the names of the settings that have changed since the start and cannot be applied at run time.
func NeedRestart(started, now *Settings) (names []string) {
	values := map[string]reflect.Value{}
	visitSettings(reflect.ValueOf(now), "", "", func(path, _ string, v reflect.Value) bool {
		values[path] = v
		return true
	})
	visitSettings(reflect.ValueOf(started), "", "", func(path, name string, v reflect.Value) bool {
		other, ok := values[path]
		isOpen := v.Kind() == reflect.Struct && !isUnmarshaler(v.Type()) || v.Type() == reflect.TypeFor[map[string]*Source]()
		switch {
		case isLive(name) || !ok:
			return false
		case isOpen && other.Type() == v.Type():
			return true
		case !reflect.DeepEqual(v.Interface(), other.Interface()):
			names = append(names, path)
		}
		return false
	})
	slices.Sort(names)
	return names
}

// sharedSettings begin the names of the settings that all processes on one database need alike.
var sharedSettings = []string{"sources.", "credentials", "roles", "mirror.", "retention", "webhooks", "feed.", "sync.", "search.",
	"store.contents", "store.s3.", "jobs.kinds"}

// SharedSettings returns the settings that all processes on one database need alike, by name. The addresses on which a
// process listens are not among them.
func (c *Settings) SharedSettings() map[string]string {
	all := map[string]string{}
	visitValues(c, func(path, name, text string, _ reflect.Value) {
		shared := slices.ContainsFunc(sharedSettings, func(start string) bool { return strings.HasPrefix(name, start) })
		if shared && !strings.HasSuffix(name, ".listen") {
			all[path] = text
		}
	})
	return all
}

// visitValues calls visit for each setting that has no settings below it. text is its value.
func visitValues(settings any, visit func(path, name, text string, v reflect.Value)) {
	visitSettings(reflect.ValueOf(settings), "", "", func(path, name string, v reflect.Value) bool {
		switch {
		case !isUnmarshaler(v.Type()) && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map || v.Kind() == reflect.Slice):
		case v.IsValid() && v.CanInterface():
			visit(path, name, fmt.Sprint(v.Interface()), v)
		}
		return true
	})
}

// shownTexts are the last words of the settings whose texts may be shown outside of the settings file. Any other text may contain
// a secret, or a value of a record.
var shownTexts = strings.Fields("data listen public_url sign_in role spec generic upstream freshness polls[] sync[] media[] kinds[] " +
	"source name schema kind access tls lists_from")

// Value is a setting with its value as it may be shown.
type Value struct {
	Name, Text string
	whole      string // the value itself
	live       bool   // whether a change applies without a restart
}

// Values returns all settings. In place of a text that may be secret it has "(hidden)".
func Values(c Settings) (all []Value) {
	visitValues(&c, func(path, name, text string, v reflect.Value) {
		one := Value{Name: path, Text: text, whole: text}
		for part := name; part != "" && !one.live; part = part[:max(strings.LastIndexAny(part, ".["), 0)] {
			one.live = isLive(part) // the table has a line for the setting, or for one above it
		}
		ref, isRef := v.Interface().(SecretRef)
		switch word := name[strings.LastIndexByte(name, '.')+1:]; {
		case text == "" || text == "<nil>" || text == "[]":
			one.Text = ""
		case isRef && strings.HasPrefix(string(ref), "file:"):
		case v.CanInt(), v.CanFloat(), v.Kind() == reflect.Bool, !isRef && slices.Contains(shownTexts, word):
		default:
			one.Text = "(hidden)"
		}
		all = append(all, one)
	})
	return all
}

// Difference is a setting for which the running server and the settings file have different values.
type Difference struct {
	Name    string `json:"name"`
	Running string `json:"running"`
	File    string `json:"file"`
	Restart bool   `json:"restart"` // whether the value of the file needs a restart
}

// Pending is the response to GET /-/reload: what a reload or a restart would change.
type Pending struct {
	Changes []Difference `json:"changes"`
}

// Compare returns in which settings a file differs from a server. The server was started with the settings started, and has
// loaded the settings current since then.
func Compare(started, current, file []Value) (all []Difference) {
	running := map[string]Value{}
	for isCurrent, values := range map[bool][]Value{false: started, true: current} {
		for _, v := range values {
			if v.live == isCurrent {
				running[v.Name] = v
			}
		}
	}
	all = []Difference{} // so that JSON has a list
	for _, f := range file {
		if r := running[f.Name]; r.whole != f.whole {
			all = append(all, Difference{Name: f.Name, Running: r.Text, File: f.Text, Restart: !f.live})
		}
		delete(running, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if r := running[name]; r.whole != "" {
			all = append(all, Difference{Name: name, Running: r.Text, Restart: !r.live})
		}
	}
	return all
}
