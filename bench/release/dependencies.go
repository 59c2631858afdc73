// This file finds the modules in the program and their licences, and lists them.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// licencesName is the file with the licences of all dependencies.
const licencesName = "THIRD-PARTY-LICENSES.txt"

// dependency is a module of others in the program, or Go's library.
type dependency struct {
	path, version, sum string
	licences           []string          // SPDX identifiers
	texts              map[string]string // by the file's path in the module
}

// listed is a package as go list -json prints it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir, Sum string
		Main                    bool
	}
}

// readDependencies returns the modules whose packages are in the program on one of the platforms, by path.
func readDependencies(ctx context.Context, root string, on []platform) ([]dependency, error) {
	goRoot, err := output(ctx, root, nil, goCommand(), "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	library := dependency{path: "std", version: strings.TrimPrefix(runtime.Version(), "go"), texts: map[string]string{}}
	if err := library.readTexts(strings.TrimSpace(goRoot), ""); err != nil {
		return nil, err
	}
	all := map[string]dependency{"std": library}
	for _, p := range on {
		out, err := output(ctx, root, p.environment(), goCommand(), "list", "-deps", "-json=Dir,Standard,Module", "./cmd/understudy")
		if err != nil {
			return nil, err
		}
		for in := json.NewDecoder(strings.NewReader(out)); ; {
			var l listed
			if err := in.Decode(&l); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if l.Standard || l.Module == nil || l.Module.Main {
				continue
			}
			d, ok := all[l.Module.Path]
			if !ok {
				d = dependency{path: l.Module.Path, version: l.Module.Version, sum: l.Module.Sum, texts: map[string]string{}}
				all[d.path] = d
			}
			// A package that was copied from elsewhere has its licence beside it.
			rel, err := filepath.Rel(l.Module.Dir, l.Dir)
			if err != nil {
				return nil, err
			}
			for folder := rel; ; folder = filepath.Dir(folder) {
				if err := d.readTexts(l.Module.Dir, folder); err != nil {
					return nil, err
				}
				if folder == "." {
					break
				}
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b dependency) int { return cmp.Compare(a.path, b.path) })
	for i := range sorted {
		if err := sorted[i].nameLicences(); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// legalFile matches the names of files with licences and notices.
var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|edl)([-._].*)?$`)

// readTexts adds the licences and notices in a folder of a module.
func (d dependency) readTexts(module, folder string) error {
	entries, err := os.ReadDir(filepath.Join(module, folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.ToSlash(filepath.Join(folder, e.Name()))
		if e.IsDir() || d.texts[name] != "" || filepath.Ext(name) == ".go" || !legalFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(module, folder, e.Name()))
		if err != nil {
			return err
		}
		d.texts[name] = string(text)
	}
	return nil
}

// licenceMarks are words of each licence that no other licence has.
var licenceMarks = map[string]string{
	"Apache-2.0":   "apache license version 2.0",
	"BSD-2-Clause": "redistribution and use in source and binary forms",
	"BSD-3-Clause": "to endorse or promote products derived from",
	"CC0-1.0":      "cc0 1.0 universal",
	"EPL-2.0":      "eclipse public license - v 2.0",
	"ISC":          "permission to use, copy, modify, and distribute this software for any purpose",
	"MIT":          "to deal in the software without restriction",
	"MPL-2.0":      "mozilla public license version 2.0",
}

// nameLicences sets the identifiers of the licences. It fails if it knows none: a person must then read the licence.
func (d *dependency) nameLicences() error {
	for _, text := range d.texts {
		text = strings.ToLower(strings.NewReplacer("(", "", ")", "").Replace(strings.Join(strings.Fields(text), " ")))
		text = strings.NewReplacer(", version 2.0", " version 2.0", "and/or", "and").Replace(text)
		for id, mark := range licenceMarks {
			if strings.Contains(text, mark) && !slices.Contains(d.licences, id) {
				d.licences = append(d.licences, id)
			}
		}
	}
	if slices.Contains(d.licences, "BSD-3-Clause") { // its text contains that of the shorter one
		d.licences = slices.DeleteFunc(d.licences, func(id string) bool { return id == "BSD-2-Clause" })
	}
	slices.Sort(d.licences)
	if len(d.licences) == 0 {
		return fmt.Errorf("the licence of %s %s is not known; read it, and add it to licenceMarks if it may be released", d.path, d.version)
	}
	return nil
}

// writeLicences returns one text with the licences of all dependencies.
func writeLicences(all []dependency) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Understudy contains %d modules of others. These are their licences.\n", len(all))
	for _, d := range all {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n%[1]s\n", strings.Repeat("=", 80), d.path, d.version, strings.Join(d.licences, ", "))
		for _, name := range slices.Sorted(maps.Keys(d.texts)) {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", name, strings.TrimSpace(d.texts[name]))
		}
	}
	return b.Bytes()
}

// component is a part of the program in the list of parts.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Licenses   []licence  `json:"licenses"`
	PackageURL string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func newLicences(ids []string) []licence {
	all := make([]licence, len(ids))
	for i, id := range ids {
		all[i].License.ID = id
	}
	return all
}

// writeBill returns the list of all parts of the program (an SBOM) in the format CycloneDX 1.6.
func (r *release) writeBill(all []dependency) ([]byte, error) {
	type metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	bill := struct {
		Schema      string      `json:"$schema"`
		Format      string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Timestamp: r.date.Format(time.RFC3339),
			Component: component{
				Type: "application", Ref: "understudy@" + r.version, Name: "understudy", Version: r.version, Licenses: newLicences([]string{"MIT"}),
				Properties: []property{{"git:commit", r.commit}},
			},
		},
	}
	for _, d := range all {
		address := "pkg:golang/" + strings.ToLower(d.path) + "@" + d.version
		c := component{Type: "library", Ref: address, Name: d.path, Version: d.version, Licenses: newLicences(d.licences), PackageURL: address}
		if d.sum != "" {
			c.Properties = []property{{"go:sum", d.sum}}
		}
		bill.Components = append(bill.Components, c)
	}
	data, err := json.MarshalIndent(bill, "", "  ")
	return append(data, '\n'), err
}
