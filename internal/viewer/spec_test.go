// Any API: pages of a made-up one, by its spec alone.

package viewer_test

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

const libraryYAML = `
name: library
title: City Library
hosts: [{url: "https://library.example"}]
auth: {style: bearer, realm: library}
paging: {style: cursor, next: more, cursor: after, size: per, default_size: 3, max_size: 30}
kinds:
  - name: books
    title: Books
    one: book
    id: [shelf, number]
    clock: bought
    columns: [bought, name, price, lent, due]
    lists:
      - {path: /books, key: data, filters: [{name: since, field: bought, op: since, type: epoch},
          {name: lent, field: lent, type: bool}, {name: due, field: due, op: day, type: date}]}
      - {path: "/shelves/{Shelf}/books", key: data, title: Of a shelf}
    instances: [{path: "/shelves/{Shelf}/books/{Number}", id: [Shelf, Number]}]
    fields:
      - {name: shelf}
      - {name: number}
      - {name: bought, type: epoch}
      - {name: name}
      - {name: price, type: decimal}
      - {name: price_unit}
      - {name: lent, type: bool}
      - {name: due, type: date}
      - {name: place, type: map}
      - {name: place.room}
`

const bookJSON = `{"shelf":"A 1","number":"7","bought":1780311790,"name":"Moby-Dick","price":-3.5,"price_unit":"EUR","lent":true,` +
	`"due":"2026-06-01","place":{"room":"north"}}`

// library answers with one book, and a list of it or of the rows it was given.
type library struct {
	asked []string
	rows  string
}

func (l *library) Answer(_ context.Context, a request.Request) (*request.Response, error) {
	l.asked = append(l.asked, a.Target.Key.URI)
	p := &understudy.Page{Key: a.Target.Key, Kind: "books", Shape: "books", Status: 200, ContentType: "application/json",
		Body: []byte(bookJSON), ID: a.Target.ID}
	if a.Target.List != nil {
		p.List, p.Body = true, []byte(`{"data":[`+cmp.Or(l.rows, bookJSON)+`],"more":true}`)
		p.Next = understudy.Key{Source: "library", URI: a.Target.Key.Path() + "?per=3&after=7"}
	}
	return &request.Response{Page: p, Outcome: request.Composed}, nil
}

// libraryReader reads from the library.
var libraryReader = viewertest.Browser{Zone: "Europe/Berlin", Headers: map[string]string{"Authorization": "Bearer alltoken"}}

// openLibrary opens a viewer of the library by its spec.
func openLibrary(t *testing.T, text string, m *library) *viewertest.Fixture {
	t.Helper()
	sp, err := upstream.ReadSpec("library.yaml", []byte(text))
	viewertest.Must(t, err)
	src := &spec.Source{Name: "books-r-us", Spec: sp}
	gate, err := access.New(map[string]*spec.Spec{"books-r-us": sp}, nil)
	viewertest.Must(t, err)
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Credentials: []callers.Credential{
		{Name: "reader", Source: "books-r-us", Secret: understudy.NewSecret("alltoken"),
			Grant: understudy.Grant{Role: understudy.RoleAll, IssuedBy: "test"}},
	}})
	viewertest.Must(t, err)
	return viewertest.Open(t, func(o *page.Options) {
		o.Sources, o.Gate, o.Callers, o.Mirror, o.Snapshot = []*spec.Source{src}, gate, book, m, nil
	})
}

func TestAnyAPI(t *testing.T) {
	m := &library{}
	h, reader := openLibrary(t, libraryYAML, m), libraryReader
	list := h.Page("/books-r-us/books", reader)
	for _, want := range []string{
		`>13:03:10</time>`, ">Today</time>", "−€3.50", `<span class="yes">yes</span>`, `href="/books-r-us/books/A%201~7"`,
		`type="datetime-local"`, `<option value="false">no</option>`,
		"assembled from records", `type="date"`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("list: no %s", want)
		}
	}
	if older := viewertest.Href(list, "Older"); older != "/books-r-us/books?after=7&understudy.back=" {
		t.Errorf("Older leads to %s", older)
	}
	one := h.Page("/books-r-us/books/A%201~7", reader)
	for _, want := range []string{"<code data-copy=\"A 1~7\">", "Moby-Dick", "<h2>Place</h2>", "<dt>Room</dt>", "north", "Today 13:03:10"} {
		if !strings.Contains(one, want) {
			t.Errorf("record: no %s", want)
		}
	}
	if last := m.asked[len(m.asked)-1]; last != "/shelves/A%201/books/7" {
		t.Errorf("asked for %s", last)
	}
	_, _, head := h.Get("/books-r-us/books?since=2026-06-01T13:03&due=2026-06-01&lent=", reader)
	if at := head.Get("Location"); at != "/books-r-us/books?since=1780311780&due=2026-06-01" {
		t.Errorf("dates are turned into %s", at)
	}
	if status, body, _ := h.Get("/books-r-us/books?understudy.list=of-a-shelf", reader); status != 200 ||
		!strings.Contains(body, `name="Shelf" type="text" required`) {
		t.Errorf("a list without its shelf: %d", status)
	}
	h.Page("/books-r-us/books?Shelf=A%201", reader)
	if last := m.asked[len(m.asked)-1]; last != "/shelves/A%201/books?per=3" {
		t.Errorf("asked for %s", last)
	}
	h.Page("/books-r-us/books/A%2F1~7", reader)
	if last := m.asked[len(m.asked)-1]; last != "/shelves/A%2F1/books/7" {
		t.Errorf("an id with a slash asks for %s", last)
	}
	h.Page("/", reader)
	if status, body, _ := h.Get("/books-r-us/number/+15551234567", reader); status != 404 ||
		!strings.Contains(body, "City Library has no pages of numbers") {
		t.Errorf("a number where nobody is called: %d", status)
	}
	if page := h.Page("/search?q=5551234567", reader); !strings.Contains(page, "is not an id or a phone number") {
		t.Error("a number is found where nobody is called")
	}
}

// The amounts of a column have as many decimal places as the finest, and one that is rounded has no more than it is known to.
func TestRoundedAmountsAreNotPadded(t *testing.T) {
	var rows []string
	for i, price := range []string{"107.30619", "0.0255", "2.5", "1500.12"} {
		row := strings.Replace(bookJSON, `"price":-3.5`, `"price":"`+price+`"`, 1)
		rows = append(rows, strings.Replace(row, `"number":"7"`, `"number":"`+strconv.Itoa(i)+`"`, 1))
	}
	priced := strings.Replace(libraryYAML, "{name: price, type: decimal}", "{name: price, type: decimal, class: price}", 1)
	page := openLibrary(t, priced, &library{rows: strings.Join(rows, ",")}).Page("/books-r-us/books", libraryReader)
	var got []string
	for _, m := range regexp.MustCompile(`<td class="num" data-t="Price \(€\)">([^<]*)</td>`).FindAllStringSubmatch(page, -1) {
		got = append(got, m[1])
	}
	if want := []string{"107.31", "0.0255", "2.5000", "1,500.1200"}; !slices.Equal(got, want) {
		t.Errorf("the prices are %q, want %q", got, want)
	}
}
