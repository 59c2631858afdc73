// Drafts: the whole text of one, what is doubted, and that every document leads to a spec
// that compiles.

package infer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/infer"
	"understudy/internal/openapi"
	"understudy/spec"
	"understudy/upstream"
)

func drafted(t *testing.T, text string) *infer.Draft {
	t.Helper()
	doc, err := openapi.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	draft, err := infer.DrawFromDocument(doc, "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upstream.ReadSpec("draft.yaml", draft.YAML); err != nil {
		t.Errorf("%v\n%s", err, draft.YAML)
	}
	return draft
}

func TestDraft(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/shop.spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	draft := drafted(t, string(text))
	got := string(draft.YAML)
	for _, one := range draft.Unsure {
		got += "# doubt: " + one + "\n"
	}
	if got != string(want) {
		t.Errorf("the draft is\n%s", got)
	}
}

// TestPathsOfADocument: of a document only some lists are drawn, with what is below them, and
// nothing is said of the others.
func TestPathsOfADocument(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ path, lists, err string }{
		{"/customers", "/v1/customers /v1/customers/{customer}/orders", ""},
		{"/customers/{id}/orders/", "/v1/customers/{customer}/orders", ""},
		{"/rates", "/v1/rates", ""},
		{"/customer", "", `no list at "/customer" or below; did you mean "/customers"?`},
	} {
		draft, err := infer.DrawFromDocument(doc, "shop.yaml", one.path)
		if one.err != "" {
			if err == nil || err.Error() != one.err {
				t.Errorf("%s: %v", one.path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", one.path, err)
			continue
		}
		var lists []string
		for _, l := range draft.Lists {
			lists = append(lists, l.Path)
		}
		if got := strings.Join(lists, " "); got != one.lists {
			t.Errorf("%s: %s", one.path, got)
		}
		if one.path != "/rates" && strings.Contains(strings.Join(draft.Unsure, "\n")+string(draft.YAML), "rates") {
			t.Errorf("%s: %q\n%s", one.path, draft.Unsure, draft.YAML)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	doc, err := openapi.Read([]byte("openapi: 3.0.0\npaths:\n  /a:\n    get:\n      " +
		"responses: {\"200\": {content: {application/json: {schema: {}}}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := infer.DrawFromDocument(doc, "x"); err == nil || !strings.Contains(err.Error(), "no GET returns a list") {
		t.Error(err)
	}
}

// ask sends a request as the drawn API wants it.
func (a *drawnAPI) ask(ctx context.Context, address string) (*infer.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	auth := spec.Auth{Style: a.auth}
	schemes, err := auth.ParseSent()
	if err != nil {
		return nil, err
	}
	for _, s := range schemes {
		s.Sign(req, "me", "secret1")
	}
	for name, value := range a.send() {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &infer.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}

// send are the header fields that the API demands.
func (a *drawnAPI) send() map[string]string {
	send := map[string]string{}
	if a.version != "" {
		send["X-Api-Version"] = a.version
	}
	if a.told.media != "application/json" {
		send["Accept"] = a.told.media
	}
	return send
}

// Specs drawn from what random APIs answer walk what these have. A list has to have several
// pages, and a parameter with an unusual name has to be in its address.
func TestSpecsOfAnswers(t *testing.T) {
	checked, found := 0, map[string]int{}
	for seed := range seeds() / 2 {
		a := draw(seed)
		if len(a.rows) <= a.full {
			continue
		}
		checked++
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			srv := httptest.NewServer(a)
			defer srv.Close()
			a.server = srv.URL
			address := srv.URL + a.base + "/" + a.kind
			usual := slices.Contains([]string{"page", "offset", "skip"}, a.page) && slices.Contains([]string{"per_page", "limit", "page_size",
				"pageSize"}, a.size)
			if usual {
				found[a.style]++
			} else if a.style == "number" || a.style == "offset" {
				address += "?" + url.Values{a.page: {strconv.Itoa(a.first)}, a.size: {strconv.Itoa(a.full)}}.Encode() // no answer names them
			}
			a.told.window = 1000
			draft, err := infer.DrawFromAnswers(t.Context(), []string{address}, infer.LiveAPI{Ask: a.ask, Auth: a.auth, Headers: a.send()})
			a.told.window = 0
			if err != nil {
				t.Fatal(err)
			}
			sp, err := upstream.ReadSpec("draft.yaml", draft.YAML)
			if err != nil {
				t.Fatal(err)
			}
			ids, _, _ := walk(t, a.client(t, sp), sp, sp.Kinds[0].Lists[0].Path)
			checktest.MustEqual(t, len(ids), len(a.rows),
				"style %s, page %q, size %q, next %q, more %q, total %q: len(ids)", a.style, a.page, a.size, a.next,
				a.more, a.total)
			checktest.MustEqual(t, len(sp.Kinds[0].Instances), 1,
				"style %s, page %q, size %q, next %q, more %q, total %q: len(sp.Kinds[0].Instances)", a.style,
				a.page, a.size, a.next, a.more, a.total)
			checktest.Equal(t, sp.Kinds[0].Clock, a.clock,
				"style %s, page %q, size %q, next %q, more %q, total %q: sp.Kinds[0].Clock", a.style, a.page, a.size,
				a.next, a.more, a.total)
			a.checkSeen(t, sp)
		})
	}
	checktest.True(t, checked >= 20, "only: checked is %v, want >= 20", checked)
	checktest.True(t, found["number"] != 0, `only: found["number"] is 0`)
	checktest.True(t, found["offset"] != 0, `only: found["offset"] is 0`)
}

// A list whose links lead to another path of its own is followed there.
func TestSpecsOfLinksElsewhere(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page = max(page, 1)
		if page < 3 {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s/racks/7000/books?page=%d&per_page=2>; rel="next"`, r.Host, page+1))
		}
		if r.URL.Path != "/shelf/own/books" && r.URL.Path != "/racks/7000/books" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `[{"id":"b%d"},{"id":"c%d"}]`, page, page)
	}))
	defer srv.Close()
	a := &drawnAPI{auth: "none", server: srv.URL}
	a.told.media = "application/json"
	draft, err := infer.DrawFromAnswers(t.Context(), []string{srv.URL + "/shelf/own/books"}, infer.LiveAPI{Ask: a.ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	sp, err := upstream.ReadSpec("draft.yaml", draft.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, draft.YAML)
	}
	ids, _, _ := walk(t, a.client(t, sp), sp, "/shelf/own/books")
	if strings.Join(ids, " ") != "b1 c1 b2 c2 b3 c3" || !strings.Contains(string(draft.YAML), "/racks/{rack_id}/books") {
		t.Errorf("%v\n%s", ids, draft.YAML)
	}
}

// A list that fits on one page goes on as others of the API do, or is doubted.
func TestSpecsOfOnePage(t *testing.T) {
	linked := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/many" && linked {
			w.Header().Set("Link", `</many?page=2&per_page=2>; rel="next"`)
		}
		if r.URL.Path != "/many" && r.URL.Path != "/few" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `[{"id":"b1"},{"id":"c1"}]`)
	}))
	defer srv.Close()
	a := &drawnAPI{auth: "none"}
	a.told.media = "application/json"
	draw := func() *infer.Draft {
		draft, err := infer.DrawFromAnswers(t.Context(), []string{srv.URL + "/many", srv.URL + "/few"}, infer.LiveAPI{Ask: a.ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		return draft
	}
	for _, l := range draw().Lists {
		if l.Style != "header" {
			t.Errorf("%+v", l)
		}
	}
	linked = false
	draft := draw()
	doubts := strings.Join(draft.Unsure, "\n")
	checktest.Equal(t, draft.Lists[1].Style, "none", "draft.Lists[1].Style")
	checktest.True(t, !draft.Lists[1].Sure, "draft.Lists[1].Sure is true")
	checktest.Contains(t, doubts, "its answer does not show how to request the next page", "doubts")
}

// FuzzAnswers gives a list, its next page and a record any bodies and header fields.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":1,"at":"2024-01-01T00:00:00Z"},{"id":2}],"has_more":true}`), []byte(`{"id":1}`), "X-RateLimit-Remaining", "7")
	f.Add([]byte(`[{"id":"a"},{"id":"b"}]`), []byte(`{"message":"none"}`), "Link", `</a?page=2>; rel="next"`)
	f.Add([]byte(`{"items":[{"sid":"x"},{"sid":"y"}],"next_cursor":"t"}`), []byte(`{"error":{"code":"x","message":"y"}}`), "Etag", "x")
	f.Fuzz(func(t *testing.T, list, one []byte, name, value string) {
		asked := 0
		ask := func(_ context.Context, address string) (*infer.Answer, error) {
			if asked++; asked > 40 {
				t.Fatal("it asks without end")
			}
			a := &infer.Answer{Status: http.StatusOK, Header: http.Header{http.CanonicalHeaderKey(name): {value}}, Body: list}
			if strings.Contains(address, "?") || strings.Count(address, "/") > 3 {
				a.Body = one
			}
			if strings.Contains(address, "no-such") {
				a.Status = http.StatusNotFound
			}
			return a, nil
		}
		draft, err := infer.DrawFromAnswers(t.Context(), []string{"http://127.0.0.1:1/a"}, infer.LiveAPI{Ask: ask, Auth: "bearer"})
		if err != nil {
			return
		}
		if _, err := upstream.ReadSpec("draft.yaml", draft.YAML); err != nil {
			t.Fatalf("%v\n%s", err, draft.YAML)
		}
	})
}

func FuzzDraft(f *testing.F) {
	shop, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(shop)
	for seed := range uint64(10) {
		a := draw(seed)
		a.server = "http://127.0.0.1:1"
		f.Add(a.document(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := openapi.Read(data)
		if err != nil {
			return
		}
		draft, err := infer.DrawFromDocument(doc, "fuzz")
		if err != nil {
			return
		}
		if _, err := upstream.ReadSpec("draft.yaml", draft.YAML); err != nil {
			t.Fatalf("%v\n%s", err, draft.YAML)
		}
	})
}
