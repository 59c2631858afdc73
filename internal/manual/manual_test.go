package manual

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"understudy/docs"
)

// TestTheDocumentationRenders reads the real pages: every link leads to a page and a heading that exist.
func TestTheDocumentationRenders(t *testing.T) {
	m, err := New(docs.Files, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Groups) != 4 {
		t.Errorf("%d groups, want 4", len(m.Groups))
	}
	pages := 1
	for _, g := range m.Groups {
		if len(g.Pages) == 0 {
			t.Errorf("the group %s has no page", g.Title)
		}
		pages += len(g.Pages)
	}
	if pages != len(m.pages) {
		t.Errorf("the table of contents has %d of %d pages", pages, len(m.pages))
	}
	p := m.Page("reference/settings.html")
	if p == nil {
		t.Fatal("reference/settings.html is missing")
	}
	for _, want := range []string{"<h1 id=\"settings\">", "<table>", "<code>viewer.listen</code>", `href="../how-to/hooks.html"`} {
		if !strings.Contains(string(p.HTML), want) {
			t.Errorf("the page of settings has no %s", want)
		}
	}
}

// site returns an index with a page of two sections beside it.
func site(more map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"README.md": {Data: []byte("# Start here\n\nSee [the page](reference/page.md#a--b), [the map](../MAP.md) and <b>raw</b>.\n")},
		"reference/page.md": {Data: []byte("# Page\n\nWords of retrying.\n\n" +
			"## A & b\n\nA lease\nexpires. `retry-after`\n\n```\ncode line\n```\n\n## A & b\n")},
		"explanation/loop.md": {Data: []byte("# Retry\n\nA retry is made.\n\n![picture](../p.svg)\n")},
		"p.svg":               {Data: []byte("<svg/>")},
	}
	for name, text := range more {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestLinksLeadToPagesAndLeaveOutOtherFiles(t *testing.T) {
	m, err := New(site(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	html := string(m.Index.HTML)
	if want := `<a href="reference/page.html#a--b">the page</a>, the map and`; !strings.Contains(html, want) {
		t.Errorf("the index is %s", html)
	}
	served, err := New(site(nil), "/-/docs/")
	if err != nil {
		t.Fatal(err)
	}
	if want := `<a href="/-/docs/reference/page.html#a--b">the page</a>`; !strings.Contains(string(served.Index.HTML), want) {
		t.Errorf("the index that is served is %s", served.Index.HTML)
	}
	if want := `<img src="/-/docs/p.svg"`; !strings.Contains(string(served.Page("explanation/loop.html").HTML), want) {
		t.Errorf("the picture that is served: %s", served.Page("explanation/loop.html").HTML)
	}
	if strings.Contains(html, "<b>") {
		t.Errorf("raw HTML is not escaped: %s", html)
	}
}

func TestADeadLinkIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"# X\n[a](nowhere.md)\n":              "nowhere.md, which is not there",
		"# X\n[a](page.md#nothing)\n":         "no such heading",
		"# X\n[a](#nothing)\n":                "no such heading",
		"no heading\n":                        "has no heading",
		"# X\n[a](../explanation/loops.md)\n": "explanation/loops.md, which is not there",
	} {
		if _, err := New(site(map[string]string{"reference/x.md": text}), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestSearchFindsSectionsWithAllWords(t *testing.T) {
	m, err := New(site(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"retry":         "explanation/loop.html#retry reference/page.html#page reference/page.html#a--b", // in a heading first
		"lease expires": "reference/page.html#a--b",
		"CODE":          "reference/page.html#a--b",
		"etry":          "",
		"lease nothing": "",
		" ":             "",
	} {
		var found []string
		for _, hit := range m.Search(query) {
			found = append(found, hit.Address)
		}
		if have := strings.Join(found, " "); have != want {
			t.Errorf("%q finds %q, want %q", query, have, want)
		}
	}
}

func TestAnExcerptShowsTheWord(t *testing.T) {
	s := section{text: strings.Repeat("é before ", 60) + "needle " + strings.Repeat("after ", 60)}
	have := s.excerpt("needle")
	for _, want := range []string{"… ", "needle", " …"} {
		if !strings.Contains(have, want) {
			t.Errorf("%q has no %q", have, want)
		}
	}
}

func FuzzPages(f *testing.F) {
	f.Add("# Page\n\n[x](#page) | a |\n", "page")
	f.Add("#\n\n##  \n", "x")
	f.Fuzz(func(t *testing.T, text, query string) {
		m, err := New(site(map[string]string{"how-to/f.md": text}), "")
		if err != nil {
			return
		}
		m.Search(query)
		html := strings.ToLower(string(m.Page("how-to/f.html").HTML))
		for _, bad := range []string{"<script", `href="javascript:`, `src="data:text`} {
			if strings.Contains(html, bad) {
				t.Errorf("%s in %s", bad, html)
			}
		}
	})
}

func TestTheSiteHasEveryPageAndPicture(t *testing.T) {
	m, err := New(site(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"index.html":            `<a href="reference/page.html">Page</a>`,
		"explanation/loop.html": `<a href="../explanation/loop.html" aria-current="page">Retry</a>`,
		"p.svg":                 "<svg/>",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(data), want) {
			t.Errorf("%s has no %s:\n%s", name, want, data)
		}
	}
	if _, err := m.ReadPicture("reference/page.md"); err == nil {
		t.Error("a page was read as a picture")
	}
	if _, err := m.ReadPicture("q.svg"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing picture: %v", err)
	}
}
