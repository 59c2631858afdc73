// From: documents and answers of every sort, and what is said of those that are wrong.

package specs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/upstream"
)

const paths = `paths: {/things: {get: {responses: {"200": {content: {application/json: {schema: {type: array,
  items: {$ref: "#/components/schemas/a"}}}}}}}}}
`

// documents are read, each with a list of things.
var documents = map[string]string{
	"three.yaml": "openapi: 3.0.0\n" + paths + "components: {schemas: {a: {type: object, properties: {id: {type: string}}}}}",
	"two.json": `{"swagger": "2.0", "host": "x.example", "paths": {"/things": {"get": {"responses": {"200": {"schema":
		{"type": "array", "items": {"$ref": "#/definitions/a"}}}}}}}, "definitions": {"a": {"properties": {"id": {"type": "string"}}}}}`,
	"circle.yaml": "openapi: 3.1.0\n" + paths + `components: {schemas: {a: {allOf: [{$ref: "#/components/schemas/a"}], type: object,
  properties: {id: {type: string}, inside: {$ref: "#/components/schemas/b"}}}, b: {properties: {back: {$ref: "#/components/schemas/a"}}}}}`,
}

func draw(t *testing.T, as Caller, what ...string) (text, doubts string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = Draw(t.Context(), what, nil, as, &out, &errs)
	return out.String(), errs.String(), err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFromReads(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, documents[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer srv.Close()
	for name, text := range documents {
		for _, what := range []string{write(t, name, text), srv.URL + "/" + name} {
			drawn, doubts, err := draw(t, Caller{}, what)
			checktest.MustNoError(t, err, "%s", what)
			checktest.Contains(t, drawn, "path: /things", "%s: drawn", what)
			checktest.Contains(t, doubts, "doubt: whole_lists: ", "%s: doubts", what)
			if _, err := upstream.ReadSpec("drawn", []byte(drawn)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFromEndsWhenItIsInterrupted draws a document for somebody who has pressed Ctrl-C.
func TestFromEndsWhenItIsInterrupted(t *testing.T) {
	at := filepath.Join(t.TempDir(), "three.yaml")
	if err := os.WriteFile(at, []byte(documents["three.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Draw(ctx, []string{at}, nil, Caller{}, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}

// TestFromReadsFilesBesideTheDocument reads a document in several files, from a folder and from a
// host, and nothing above its folder.
func TestFromReadsFilesBesideTheDocument(t *testing.T) {
	files := map[string]string{
		"api.yaml": "openapi: 3.0.0\npaths: {/things: {$ref: ./paths/things.yaml}}\n",
		"paths/things.yaml": `get: {responses: {"200": {content: {application/json: {schema: {type: array, ` +
			`items: {$ref: ../thing.json#/a~1b/0}}}}}}}`,
		"thing.json": `{"a/b": [{"type": "object", "properties": {"id": {"type": "string"}}}]}`,
		"above.yaml": "openapi: 3.0.0\npaths: {/things: {$ref: ../../things.yaml}}\n",
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "paths"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	for _, at := range []string{dir, srv.URL} {
		drawn, _, err := draw(t, Caller{}, at+"/api.yaml")
		if err != nil || !strings.Contains(drawn, "id: [id]") {
			t.Errorf("%s: %v\n%s", at, err, drawn)
		}
	}
	if _, _, err := draw(t, Caller{}, dir+"/above.yaml"); err == nil || !strings.Contains(err.Error(), `the reference "../../things.yaml#"`) {
		t.Errorf("a file above the document's folder: %v", err)
	}
}

// manyLists is a document with 4,000 lists, each of a kind of its own.
func manyLists() string {
	var paths []string
	for i := range 4000 {
		row := fmt.Sprintf(`{"type": "object", "properties": {"id": {"type": "string"}, "a_member_of_%d": {"type": "string"}}}`, i)
		paths = append(paths, fmt.Sprintf(`"/things%d": {"get": {"responses": {"200": {"content": {"application/json":
			{"schema": {"type": "array", "items": %s}}}}}}}`, i, row))
	}
	return `{"openapi": "3.0.0", "paths": {` + strings.Join(paths, ",") + `}}`
}

func TestFromSaysWhatIsWrong(t *testing.T) {
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, other.URL+"/spec.json", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/people":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<!DOCTYPE html><title>Docs</title>")
		case "/endless":
			for chunk := bytes.Repeat([]byte(" "), 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/empty":
			fmt.Fprint(w, `{"data": []}`)
		case "/one":
			fmt.Fprint(w, `{"id": 1}`)
		case "/broken":
			fmt.Fprint(w, `{"data": [`)
		case "/busy":
			w.Header().Set("Retry-After", "9999")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/closed":
			w.WriteHeader(http.StatusUnauthorized)
		case "/versioned":
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer srv.Close()
	big := write(t, "big.json", "")
	if err := os.Truncate(big, 200<<20); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ what, want string }{
		{"nowhere.yaml", "nowhere.yaml: no such file"},
		{t.TempDir(), "name a regular file"},
		{big, "big.json: it is larger than 48 MiB"},
		{write(t, "page.html", "\n<HTML><body>"), "page.html: it is an HTML page"},
		{write(t, "words.txt", "some words"), "no OpenAPI document"},
		{write(t, "half.json", `{"openapi": `), "not JSON at byte 11"},
		{write(t, "tab.yaml", "a: [\n"), "neither JSON nor YAML"},
		{write(t, "old.json", `{"swaggerVersion": "1.2", "apis": []}`), "it needs openapi: 3.x or swagger: 2.0"},
		{write(t, "none.yaml", "openapi: 3.0.0\npaths: {}\n"), "the document has no GET with an answer in JSON"},
		{write(t, "writes.yaml", "openapi: 3.0.0\npaths: {/a: {post: {responses: {}}}}\n"), "the document has no GET with an answer in JSON"},
		{write(t, "one.yaml", `{"openapi": "3.0.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {"application/json":
			{"schema": {"type": "object", "properties": {"id": {"type": "string"}}}}}}}}}}}`), "no GET returns a list"},
		{write(t, "many.json", manyLists()), "a spec file with its 4000 lists is longer than 1024 KiB; name the lists that you need with --path"},
		{srv.URL + "/elsewhere", "it redirects to " + other.URL + "; use that address"},
		{srv.URL + "/round", "redirects"},
		{srv.URL + "/people", "it is an HTML page; give the address of the document itself"},
		{srv.URL + "/endless", "larger than 48 MiB"},
		{srv.URL + "/empty", "the list is empty"},
		{srv.URL + "/one", "no GET returns a list, that is, an array of objects"},
		{srv.URL + "/broken", "not JSON at byte"},
		{srv.URL + "/busy", "status 429: it refuses further requests for 2h46m39s"},
		{srv.URL + "/closed", "status 401: it refuses the credential, which was sent as bearer"},
		{srv.URL + "/versioned", "status 400: if it requires a header field, add --header"},
		{"http://127.0.0.1:1/spec.json", "connection refused"},
		{"http://", "is not a URL"},
	} {
		drawn, _, err := draw(t, Caller{Secret: understudy.NewSecret("hunter2")}, one.what)
		checktest.MustTrue(t, err != nil, "%s: err is nil", one.what)
		checktest.Contains(t, err.Error(), one.want, "%s: err.Error()", one.what)
		checktest.Lacks(t, err.Error(), "hunter2", "%s: err.Error()", one.what)
		checktest.Equal(t, drawn, "", "%s: drawn; %v", one.what, err)
	}
	if strayed.Load() > 0 {
		t.Error("another host was asked")
	}
	if _, _, err := draw(t, Caller{}, write(t, "a.yaml", ""), "b.yaml"); err == nil || !strings.Contains(err.Error(), "one document") {
		t.Error(err)
	}
	if err := Draw(t.Context(), []string{srv.URL + "/one"}, []string{"/one"}, Caller{}, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "--path works only with a document") {
		t.Error(err)
	}
	if _, _, err := draw(t, Caller{}, srv.URL+"/closed"); err == nil || !strings.Contains(err.Error(), "it needs a credential; add --") {
		t.Error(err)
	}
}

// A field that the API demands is sent with every request, and stands in the spec. A limit
// that ends soon is waited for.
func TestFromSendsAndWaits(t *testing.T) {
	var asked atomic.Int32
	s := &shelf{rows: 25}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Shelf-Version") != "7":
			w.WriteHeader(http.StatusBadRequest)
		case asked.Add(1)%3 == 0:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusForbidden)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	send, err := ReadHeaders([]string{"shelf-version: 7"})
	if err != nil {
		t.Fatal(err)
	}
	as := Caller{Secret: understudy.NewSecret("key"), Headers: send}
	drawn, _, err := draw(t, as, srv.URL+"/number?page=1&n=10", srv.URL+"/cursor", srv.URL+"/token")
	checktest.MustNoError(t, err, "")
	checktest.MustContains(t, drawn, `send: {Shelf-Version: "7"}`, "drawn")
	checktest.MustContains(t, drawn, "style: ", "drawn")
	for _, text := range []string{"x", "x:", ":1", "Authorization: Bearer x", "a b: c"} {
		if _, err := ReadHeaders([]string{text}); err == nil {
			t.Errorf("--header %s is taken", text)
		}
	}
}

// desk is an API of tickets with comments below them. It selects tickets by their status and
// comments by whether they are public, and ignores any other filter.
func desk(w http.ResponseWriter, r *http.Request) {
	rows, selects := []map[string]any{}, ""
	for i := range 20 {
		rows = append(rows, map[string]any{"id": fmt.Sprintf("T-%d", 900+i), "status": []string{"open", "closed"}[i%2],
			"priority": []string{"low", "high"}[i%3/2]})
	}
	switch r.URL.Path {
	case "/v1/tickets":
		selects = "status"
	case "/v1/tickets/T-907/comments":
		rows, selects = nil, "public"
		for i := range 20 {
			rows = append(rows, map[string]any{"id": 70 + i, "text": "T", "public": i%4 > 0})
		}
	default:
		http.Error(w, `{"error":"none"}`, http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	if want := q.Get(selects); want != "" {
		rows = slices.DeleteFunc(rows, func(row map[string]any) bool { return fmt.Sprint(row[selects]) != want })
	}
	page, n := 1, 10
	_, _ = fmt.Sscan(q.Get("page"), &page)
	_, _ = fmt.Sscan(q.Get("per_page"), &n)
	from := min((page-1)*n, len(rows))
	_ = json.NewEncoder(w).Encode(map[string]any{"rows": rows[from:min(from+n, len(rows))], "count": len(rows)})
}

// The id of a record in the path of a list below it is a variable, whatever it looks like. What
// the API does not select by is no filter.
func TestFromDrawsListsBelowRecords(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(desk))
	defer srv.Close()
	text, _, err := draw(t, Caller{}, srv.URL+"/v1/tickets", srv.URL+"/v1/tickets/T-907/comments")
	if err != nil {
		t.Fatal(err)
	}
	sp, err := upstream.ReadSpec("drawn.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, sp.Name, "tickets", "it is called: sp.Name")
	checktest.Equal(t, sp.Title, "Tickets", "it is called: sp.Title")
	checktest.True(t, sp.Port != 0, "it is called: sp.Port is 0")
	for kind, want := range map[string]string{
		"tickets":  "/v1/tickets by status",
		"comments": "/v1/tickets/{ticket_id}/comments by public",
	} {
		got := "nothing"
		if k := sp.Kind(kind); k != nil {
			got = k.Lists[0].Path + " by"
			for _, f := range k.Lists[0].Filters {
				got += " " + f.Name
			}
		}
		if got != want {
			t.Errorf("of %s %q is drawn, want %q", kind, got, want)
		}
	}
}
