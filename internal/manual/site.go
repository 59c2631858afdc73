// This file writes the documentation as a site of files.

package manual

import (
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	//go:embed site.html
	siteHTML     string
	siteTemplate = template.Must(template.New("site").Parse(siteHTML))
)

// Write creates a folder and writes every page and picture into it. Links are relative, so that any server, or a
// browser that opens the files, shows the site.
func (m *Manual) Write(folder string) error {
	for at, p := range m.pages {
		var b strings.Builder
		data := struct {
			Manual *Manual
			Page   *Page
			Root   string
		}{m, p, strings.Repeat("../", strings.Count(at, "/"))}
		if err := siteTemplate.Execute(&b, data); err != nil {
			return fmt.Errorf("manual: render %s: %w", at, err)
		}
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(at)), []byte(b.String())); err != nil {
			return err
		}
	}
	return fs.WalkDir(m.files, ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(at) != ".svg" {
			return err
		}
		data, err := m.ReadPicture(at)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(folder, filepath.FromSlash(at)), data)
	})
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("manual: create folder: %w", err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("manual: write page: %w", err)
	}
	return nil
}
