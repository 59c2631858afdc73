// APIs by spec file alone: a made-up library with cursor paging, numeric and
// composite ids and bearer tokens, and one with Link headers.

package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

func madeUp(t *testing.T, name string, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(Options{Source: &spec.Source{Name: "mine", Spec: specFile(t, name), User: "main"}, Base: srv.URL,
		Secret: understudy.NewSecret("shelftoken"), Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// walk follows the next keys and returns the ids.
func walk(t *testing.T, c *Client, uri string) (ids []string, pages int) {
	t.Helper()
	for key := target(t, c, uri).Key; !key.IsZero(); pages++ {
		page, err := get(t, c, key.URI)
		checktest.MustNoError(t, err, "%s; page %+v", key, page)
		checktest.MustEqual(t, page.NotStored, "", "%s: page.NotStored", key)
		checktest.MustTrue(t, pages <= 100, "%s: pages is %v, want <= 100", key, pages)
		for _, r := range page.Rows {
			ids = append(ids, r.ID)
		}
		key = page.Next
	}
	return ids, pages
}

func TestMadeUpCursor(t *testing.T) {
	c := madeUp(t, "shelf", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer shelftoken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/v3/main/books" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"title":"no"}`)
			return
		}
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		items := []map[string]any{}
		for id := after + 1; id <= min(after+limit, 95); id++ {
			items = append(items, map[string]any{"id": id, "bought": 1700000000 + id, "pin": "4711", "vault": map[string]any{"code": 99}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"data": map[string]any{"items": items}, "paging": map[string]any{"more": after+limit < 95, "session": "shelftoken"},
		})
	})
	for uri, want := range map[string]int{"/v3/main/books": 5, "/v3/main/books?limit=100": 1, "/v3/main/books?author=x&limit=19": 5} {
		ids, pages := walk(t, c, uri)
		checktest.MustEqual(t, len(ids), 95, "%s: len(ids)", uri)
		checktest.Equal(t, ids[0], "1", "%s: ids[0]", uri)
		checktest.Equal(t, ids[94], "95", "%s: ids[94]", uri)
		checktest.Equal(t, pages, want, "%s: pages", uri)
	}
	page, err := get(t, c, "/v3/main/books?limit=1")
	if want := `{"data":{"items":[{"bought":1700000001,"id":1,"pin":"","vault":{"code":""}}]},"paging":{"more":true,"session":""}}` +
		"\n"; err != nil || string(page.Body) != want {
		t.Errorf("%v %s", err, page.Body)
	}
	if r := page.Rows[0]; r.Clock != 1700000001 || string(page.Body[r.Start:r.End]) != `{"bought":1700000001,"id":1,"pin":"",`+
		`"vault":{"code":""}}` {
		t.Errorf("%+v", r)
	}
	page, err = get(t, c, "/v3/main/loans/r1/7")
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.Equal(t, page.Status, 404, "page.Status")
	checktest.Equal(t, page.ID, "r1~7", "page.ID")
	checktest.Equal(t, page.Kind, "loans", "page.Kind")
}

func TestMadeUpLinks(t *testing.T) {
	c := madeUp(t, "links", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page = max(page, 1)
		if page < 4 {
			w.Header().Add("Link", fmt.Sprintf(`<https://elsewhere.example/events?page=%d&per_page=30>; rel="next"`, page+1))
		}
		w.Header().Add("Link", `</events?page=4>; rel="last"`)
		fmt.Fprintf(w, `[{"id":"a%d","at":"2024-01-0%dT00:00:00Z"},{"id":"b%d"}]`, page, page, page)
	})
	ids, pages := walk(t, c, "/events")
	if fmt.Sprint(ids) != "[a1 b1 a2 b2 a3 b3 a4 b4]" || pages != 4 {
		t.Errorf("%d pages: %v", pages, ids)
	}
}
