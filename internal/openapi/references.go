// This file resolves the $ref references of a document, including references to other files.

package openapi

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// OpenFunc returns the content of a file to which a document refers. name is relative to the folder of the document.
type OpenFunc func(name string) ([]byte, error)

// Limits for the references of a document. maxPath, in bytes, ends a sequence of files in which each file refers to
// a copy of itself in a subfolder.
const (
	maxHops  = 32   // the maximum length of a chain of references
	maxFiles = 5000 // the maximum number of files to which a document refers
	maxPath  = 255
)

// skippedKeys are keys whose values are not read, so that references inside these values may be broken. namedKeys
// are keys whose values are objects with names as keys instead of keywords of OpenAPI.
var (
	skippedKeys = []string{"callbacks", "default", "description", "discriminator", "enum", "example", "examples", "externalDocs", "links",
		"requestBody"}
	namedKeys = []string{"content", "headers", "patternProperties", "properties", "responses"}
)

// followReferences resolves all references that the operations and security schemes use. It loads the files to
// which the references lead. Its error names the first broken reference.
func (d *Document) followReferences(open OpenFunc) error {
	var refs []*Value
	files, left := 0, MaxSize
	seen := map[*Value]bool{}
	var queue []*Value
	var visit func(v *Value, isNamed bool) error
	refer := func(v *Value) error {
		ref := v.TextOf("$ref")
		file, _, _ := strings.Cut(ref, "#")
		if d.tree.roots[file] == nil {
			if files++; files > maxFiles || len(file) > maxPath || open == nil || strings.Contains(file, ":") {
				return fmt.Errorf("the reference %q does not lead to a file beside the document", ref)
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
			rewriteReferences(root, file)
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
			if slices.Contains(skippedKeys, key) || strings.HasPrefix(key, "x-") {
				continue
			}
			if err := visit(item, slices.Contains(namedKeys, key)); err != nil {
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
			return fmt.Errorf("the reference %q leads in a circle", v.TextOf("$ref"))
		}
	}
	return nil
}

// rewriteReferences makes every reference in a file begin with the path of its target, relative to the folder of the document.
func rewriteReferences(v *Value, file string) {
	for i, item := range v.Items {
		if v.Kind != Object || v.Keys[i] != "$ref" || item.Kind != String {
			rewriteReferences(item, file)
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

func (d *Document) root() *Value { return d.tree.roots[""] }

// resolve follows $ref up to maxHops times and returns the value to which it leads. It returns nil if the reference
// is broken.
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

// lookUp returns the value to which a reference leads: a file, and a JSON Pointer (RFC 6901) in the fragment. It
// returns nil if there is no such value or if the file has not been loaded.
func (d *Document) lookUp(ref string) *Value {
	if v := d.tree.resolved[ref]; v != nil {
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
	d.tree.resolved[ref] = v
	return v
}

// child returns the member of an object with a key, or the element of an array whose index is key. It returns nil
// if there is none.
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

// unescape returns the key for which a part of a JSON Pointer in a URL fragment stands.
func unescape(part string) string {
	if text, err := url.PathUnescape(part); err == nil {
		part = text
	}
	return pointerUnescaper.Replace(part)
}

// pointerUnescaper replaces the escape sequences of a JSON Pointer (RFC 6901, section 3).
var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// referenceName returns the schema name in a reference, such as "customer" for #/components/schemas/customer
// and for models/customer.yaml. It returns "" if the reference leads to a part of a schema.
func referenceName(ref string) string {
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
