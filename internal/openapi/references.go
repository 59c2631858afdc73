// References: where the $ref of a document lead, in it and to files beside it.

package openapi

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Open reads a file that a document refers to, by its path from the document's folder.
type Open func(name string) ([]byte, error)

// Bounds of the references of a document: of one chain, of the files that they lead to, and of a
// file's path. A file may lead to one of the same content in a folder below its own, and so on.
const (
	maxHops  = 32
	maxFiles = 5000
	maxPath  = 255
)

// Members that are not read, so that references in them do not count, and members whose own
// members have names of the document's choice.
var (
	unread = []string{"callbacks", "default", "description", "discriminator", "enum", "example", "examples", "externalDocs", "links",
		"requestBody"}
	named = []string{"content", "headers", "patternProperties", "properties", "responses"}
)

// follow looks up every reference that is read of the document's operations, and reads the
// files that they lead to. The error names the first one that leads nowhere.
func (d *Document) follow(open Open) error {
	var refs []*Value
	files, left := 0, MaxSize
	seen := map[*Value]bool{}
	var queue []*Value
	var visit func(v *Value, isNamed bool) error
	refer := func(v *Value) error {
		ref := v.Of("$ref")
		file, _, _ := strings.Cut(ref, "#")
		if d.tree.roots[file] == nil {
			if files++; files > maxFiles || len(file) > maxPath || open == nil || strings.Contains(file, ":") {
				return fmt.Errorf("the reference %q leads to what is no file beside the document", ref)
			}
			data, err := open(file)
			if err != nil {
				return fmt.Errorf("the reference %q: %w", ref, err)
			}
			if left -= len(data); left < 0 {
				return fmt.Errorf("the reference %q: all files together are larger than %d MiB", ref, MaxSize>>20)
			}
			root, err := Parse(data)
			if err != nil {
				return fmt.Errorf("the reference %q: %w", ref, err)
			}
			rebase(root, file)
			d.tree.roots[file] = root
		}
		to := d.lookUp(ref)
		if to == nil {
			return fmt.Errorf("the reference %q leads nowhere", ref)
		}
		refs, queue = append(refs, v), append(queue, to)
		return nil
	}
	visit = func(v *Value, isNamed bool) error {
		if v == nil || len(v.Items) == 0 || seen[v] {
			return nil
		}
		seen[v] = true
		if ref := v.Get("$ref"); ref != nil && ref.Kind == String && !isNamed {
			if err := refer(v); err != nil {
				return err
			}
		}
		for i, item := range v.Items {
			key := ""
			if v.Kind == Object && !isNamed {
				key = v.Keys[i]
			}
			if slices.Contains(unread, key) || strings.HasPrefix(key, "x-") {
				continue
			}
			if err := visit(item, slices.Contains(named, key)); err != nil {
				return err
			}
		}
		return nil
	}
	schemes := d.root().Get("components").Get("securitySchemes")
	for _, part := range []*Value{d.root().Get("paths"), schemes, d.root().Get("securityDefinitions")} {
		if err := visit(part, true); err != nil {
			return err
		}
	}
	for i := 0; i < len(queue); i++ {
		if err := visit(queue[i], false); err != nil {
			return err
		}
	}
	for _, v := range refs {
		if d.resolve(v) == nil {
			return fmt.Errorf("the reference %q leads in a circle", v.Of("$ref"))
		}
	}
	return nil
}

// rebase has every reference of a file begin with the file's path from the document's folder.
func rebase(v *Value, file string) {
	for i, item := range v.Items {
		if v.Kind != Object || v.Keys[i] != "$ref" || item.Kind != String {
			rebase(item, file)
			continue
		}
		to, pointer, _ := strings.Cut(item.Text, "#")
		if text, err := url.PathUnescape(to); err == nil {
			to = text
		}
		switch {
		case to == "":
			to = file
		case !strings.Contains(to, ":"):
			to = path.Join(path.Dir(file), to)
		}
		v.Items[i] = Text(to + "#" + pointer)
	}
}

// root returns the document itself.
func (d *Document) root() *Value { return d.tree.roots[""] }

// resolve follows $ref; what was never followed before is nil.
func (d *Document) resolve(v *Value) *Value {
	for range maxHops {
		ref := v.Get("$ref")
		if ref == nil || ref.Kind != String {
			return v
		}
		v = d.lookUp(ref.Text)
	}
	return nil
}

// lookUp returns the value that a JSON Pointer (RFC 6901) in a fragment leads to; nil: none.
func (d *Document) lookUp(ref string) *Value {
	if v := d.tree.found[ref]; v != nil {
		return v
	}
	file, pointer, _ := strings.Cut(ref, "#")
	v := d.tree.roots[file]
	if pointer == "" {
		return v
	}
	parts, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil
	}
	for part := range strings.SplitSeq(parts, "/") {
		v = v.child(unescape(part))
	}
	d.tree.found[ref] = v
	return v
}

// child returns the member with a key, or the element with an index; nil: none.
func (v *Value) child(key string) *Value {
	if v == nil || v.Kind != Array {
		return v.Get(key)
	}
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= len(v.Items) || strconv.Itoa(i) != key {
		return nil
	}
	return v.Items[i]
}

// unescape is one part of a JSON Pointer in a fragment as the key that it names.
func unescape(part string) string {
	if text, err := url.PathUnescape(part); err == nil {
		part = text
	}
	return unescaped.Replace(part)
}

// unescaped undoes the escapes of RFC 6901, section 3.
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// nameOf returns the name that a reference gives to what it leads to: customer of
// #/components/schemas/customer and of models/customer.yaml. It is "" for a part of a schema.
func nameOf(ref string) string {
	file, pointer, _ := strings.Cut(ref, "#")
	if strings.Trim(pointer, "/") == "" {
		return strings.TrimSuffix(path.Base(file), path.Ext(file))
	}
	parts := strings.Split(pointer, "/")
	last := parts[len(parts)-1]
	_, err := strconv.Atoi(last)
	if err == nil || last == "items" || slices.Contains(parts[:len(parts)-1], "properties") {
		return ""
	}
	return unescape(last)
}
