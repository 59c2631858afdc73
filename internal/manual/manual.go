// Package manual turns the Markdown files of the documentation into HTML pages. The viewer shows them
// under /-/docs/, and docs/site writes them as files.
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// indexFile is the page with which readers begin.
const indexFile = "README.md"

// groups are the folders of documentation pages, in the order of the table of contents.
var groups = []struct{ folder, title string }{
	{"start", "Start"}, {"how-to", "How to"}, {"reference", "Reference"}, {"explanation", "Explanation"},
}

// Manual contains all pages of the documentation. It does not change after New, and is safe for concurrent use.
type Manual struct {
	Index  *Page
	Groups []Group
	pages  map[string]*Page // the pages by their Path
	files  fs.FS
}

// Group is a part of the table of contents.
type Group struct {
	Title string
	Pages []*Page
}

// Page is one page of the documentation.
type Page struct {
	Path  string        // the address of the page below the documentation's root, such as "reference/specs.html"
	Title string        // the first heading of the page
	HTML  template.HTML // the content of the page, including its first heading

	sections []section
}

// New reads and renders every page of the documentation. Links to other pages begin with root, such as "/-/docs/";
// they are relative if root is empty. It returns an error if a link leads to a page, a heading or a file of the
// documentation that does not exist.
func New(files fs.FS, root string) (*Manual, error) {
	m := &Manual{pages: map[string]*Page{}, files: files}
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, fmt.Errorf("manual: list pages: %w", err)
	}
	for _, g := range groups {
		inside, err := fs.Glob(files, g.folder+"/*.md")
		if err != nil {
			return nil, fmt.Errorf("manual: list pages: %w", err)
		}
		names = append(names, inside...)
	}
	parsed := map[string]*document{}
	for _, name := range names {
		if parsed[name], err = parse(files, name); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		p, err := parsed[name].render(parsed, root)
		if err != nil {
			return nil, err
		}
		m.pages[p.Path] = p
	}
	if m.Index = m.pages[addressOf(indexFile)]; m.Index == nil {
		return nil, fmt.Errorf("manual: %s is missing", indexFile)
	}
	m.group(names)
	return m, nil
}

// group fills the table of contents. A page outside of the folders belongs to the group of explanations.
func (m *Manual) group(names []string) {
	for _, g := range groups {
		var in []*Page
		for _, name := range names {
			folder := path.Dir(name)
			if folder == "." && name != indexFile {
				folder = groups[len(groups)-1].folder
			}
			if folder == g.folder {
				in = append(in, m.pages[addressOf(name)])
			}
		}
		slices.SortStableFunc(in, func(a, b *Page) int { return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) })
		m.Groups = append(m.Groups, Group{g.title, in})
	}
}

// Page returns the page at a path below the documentation's root, or nil if there is no such page. The empty path
// means the index.
func (m *Manual) Page(at string) *Page {
	if at == "" {
		return m.Index
	}
	return m.pages[at]
}

// ReadPicture returns a picture that pages show. If there is no picture at the path, the error wraps fs.ErrNotExist.
func (m *Manual) ReadPicture(at string) ([]byte, error) {
	if path.Ext(at) != ".svg" || !fs.ValidPath(at) {
		return nil, fmt.Errorf("manual: read %s: %w", at, fs.ErrNotExist)
	}
	return fs.ReadFile(m.files, at)
}

// addressOf returns the address of the page into which a Markdown file is turned.
func addressOf(name string) string {
	if name == indexFile {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// document is a Markdown file that has been parsed.
type document struct {
	name    string
	source  []byte
	root    ast.Node
	anchors map[string]bool
}

// markdown is the Markdown parser. It writes no style attributes, because the viewer's content security policy
// forbids them.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()))

func parse(files fs.FS, name string) (*document, error) {
	source, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("manual: read %s: %w", name, err)
	}
	ids := &anchors{taken: map[string]bool{}}
	d := &document{name: name, source: source, anchors: ids.taken}
	d.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	return d, nil
}

// render checks the links of a document and returns its page.
func (d *document) render(all map[string]*document, root string) (*Page, error) {
	p := &Page{Path: addressOf(d.name), sections: d.sections()}
	if len(p.sections) == 0 {
		return nil, fmt.Errorf("manual: %s has no heading", d.name)
	}
	p.Title = p.sections[0].title
	var plain []ast.Node // the links that lead out of the documentation
	err := ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if picture, ok := n.(*ast.Image); ok && entering && root != "" {
			picture.Destination = []byte(root + path.Join(path.Dir(d.name), string(picture.Destination)))
		}
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to, inside, err := d.resolve(string(link.Destination), all, root)
		link.Destination = []byte(to)
		if !inside {
			plain = append(plain, n)
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return nil, err
	}
	for _, n := range plain {
		unwrapLink(n)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, d.source, d.root); err != nil {
		return nil, fmt.Errorf("manual: render %s: %w", d.name, err)
	}
	wide := strings.NewReplacer("<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<th>", `<th scope="col">`)
	p.HTML = template.HTML(wide.Replace(b.String())) // safe, because goldmark escapes raw HTML
	return p, nil
}

// resolve returns the destination of a link on a page. inside is false for a file of the repository that is not
// part of the documentation.
func (d *document) resolve(to string, all map[string]*document, root string) (address string, inside bool, err error) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to, true, nil
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := d.name
	if file != "" {
		target = path.Join(path.Dir(d.name), file)
	}
	if strings.HasPrefix(target, "../") {
		return "", false, nil
	}
	other := all[target]
	if other == nil {
		return "", false, fmt.Errorf("manual: %s links to %s, which is not there", d.name, to)
	}
	if anchor != "" && !other.anchors[anchor] {
		return "", false, fmt.Errorf("manual: %s links to %s, but %s has no such heading", d.name, to, target)
	}
	if file != "" {
		root = cmp.Or(root, strings.Repeat("../", strings.Count(d.name, "/")))
		address = root + addressOf(target)
	}
	if anchor != "" {
		address += "#" + anchor
	}
	return address, true, nil
}

// unwrapLink replaces a link by its text.
func unwrapLink(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		parent.InsertBefore(parent, n, c)
		c = next
	}
	parent.RemoveChild(parent, n)
}
