// Headers: what a spec names reaches the API, and nothing else does.

package answers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const shopSpec = `name: shop
hosts: [{url: "https://shop.example.com"}]
auth: {style: bearer}
headers:
  key: {Shop-Account: [], Shop-Version: [], Accept: ["application/json", "*/*"]}
  write: [Idempotency-Key]
  send: {Shop-Version: "2026-01"}
  back: [Shop-Trace]
kinds:
  - name: orders
    id: [id]
    deleted: deleted
    lists: [{path: /v1/orders, key: data}]
    instances: [{path: "/v1/orders/{Order}", id: [Order]}]
    fields: [{name: id}, {name: total}, {name: deleted, type: bool}]
`

// shop makes one order for each idempotency key, and loses its first answer.
type shop struct {
	mu      sync.Mutex
	orders  []string
	byKey   map[string]string
	headers []http.Header
	lost    bool

	deleted   bool
	etag      string
	unchanged int // answers of 304
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		account := r.Header.Get("Shop-Account") + r.Header.Get("Shop-Version")
		w.Header().Set("Shop-Trace", fmt.Sprint("trace-", len(s.headers)))
		if strings.HasSuffix(r.URL.Path, "/orders") {
			w.Header().Set("ETag", fmt.Sprintf("%q", s.etag))
			if s.etag != "" && r.Header.Get("If-None-Match") == fmt.Sprintf("%q", s.etag) {
				s.unchanged++
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		if one, ok := strings.CutPrefix(r.URL.Path, "/v1/orders/"); ok && s.deleted {
			fmt.Fprintf(w, `{"id":%q,"deleted":true}`, one)
			return
		} else if ok {
			fmt.Fprintf(w, `{"id":%q,"total":%q}`, one, account)
			return
		}
		fmt.Fprintf(w, `{"data":[{"id":"or_9","total":%q}]}`, account)
		return
	}
	if r.Method == http.MethodDelete {
		s.deleted = true
		fmt.Fprintf(w, `{"id":%q,"deleted":true}`, strings.TrimPrefix(r.URL.Path, "/v1/orders/"))
		return
	}
	key := r.Header.Get("Idempotency-Key")
	id, known := s.byKey[key]
	if !known || key == "" {
		id = fmt.Sprintf("or_%d", len(s.orders)+1)
		s.orders = append(s.orders, id)
		s.byKey[key] = id
	}
	if !s.lost {
		s.lost = true
		panic(http.ErrAbortHandler) // it was done, and its answer is lost
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q,"total":5}`, id)
}

// openShop starts a shop and Understudy in front of it.
func openShop(t *testing.T) (*shop, *binary.Server) {
	t.Helper()
	s := &shop{byKey: map[string]string{}}
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"shop.yaml": shopSpec, "shop.token": "upstreamtoken-1234", "till.secret": "a-token-of-the-till-567",
		"few.secret":  "a-token-of-the-few-8901",
		"part.secret": "a-token-of-a-part-8901", "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  shop: {spec: ./shop.yaml, upstream: "` + up.URL + `", secret: "file:shop.token", listen: "127.0.0.1:0", polls: []}
roles:
  part: {shop: {"*": see, orders.total: hide}}
  few: {shop: {"*": see, rows: {orders: {where: {id: or_1}}}}}
credentials:
  - {name: till, source: shop, secret: "file:till.secret", role: all, allow: ["POST /v1/orders", "DELETE /v1/orders/*"]}
  - {name: few, source: shop, secret: "file:few.secret", role: few}
  - {name: part, source: shop, secret: "file:part.secret", role: part}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, rig.Start(t, dir, "serve")
}

// A write whose answer was lost is sent again with the same key, and nothing is made twice.
func TestIdempotencyKeyArrives(t *testing.T) {
	t.Parallel()
	s, house := openShop(t)
	headers := []string{"Authorization", "Bearer a-token-of-the-till-567", "Content-Type", "application/json", "Idempotency-Key", "k1"}
	order := func(headers ...string) rig.Reply {
		r, err := rig.Ask(http.MethodPost, "", house.URL("shop")+"/v1/orders", `{"total":5}`, headers...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := order(headers[:4]...); r.Status != http.StatusGatewayTimeout {
		t.Errorf("an answer was lost, without a key: %d %s", r.Status, r.Body)
	}
	s.mu.Lock()
	s.lost, s.orders, s.headers = false, nil, nil
	s.mu.Unlock()
	var made struct{ ID string }
	{
		r := order(headers...)
		checktest.Equal(t, r.Status, http.StatusCreated, "an answer was lost, with a key: r.Status")
		checktest.MustTrue(t, json.Unmarshal(r.Body, &made) == nil,
			"an answer was lost, with a key: json.Unmarshal(r.Body, &made) is %v", json.Unmarshal(r.Body, &made))
		checktest.Equal(t, made.ID, "or_1", "an answer was lost, with a key: made.ID")
	}
	if r, err := rig.Ask(http.MethodGet, "", house.URL("shop")+"/v1/orders", "", headers...); err != nil || r.Status != http.StatusOK {
		t.Errorf("the list: %v, %d %s", err, r.Status, r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.orders) != 1 {
		t.Errorf("%d orders were made", len(s.orders))
	}
	for i, h := range s.headers {
		key := "k1"
		if i == len(s.headers)-1 {
			key = "" // a read
		}
		checktest.Equal(t, h.Get("Shop-Version"), "2026-01", `request: h.Get("Shop-Version")`)
		checktest.Equal(t, h.Get("X-Http-Method-Override"), "", `request: h.Get("X-Http-Method-Override")`)
		checktest.Equal(t, h.Get("Idempotency-Key"), key, `request: h.Get("Idempotency-Key")`)
		checktest.Equal(t, h.Get("Authorization"), "Bearer upstreamtoken-1234", `request: h.Get("Authorization")`)
	}
}

// What a header asks for is part of the question: another account's orders, or the same in
// another version, are never given for each other, and no record is made of them.
func TestHeadersArePartOfTheKey(t *testing.T) {
	t.Parallel()
	s, house := openShop(t)
	get := func(path string, headers ...string) rig.Reply {
		t.Helper()
		r, err := rig.Ask(http.MethodGet, "", house.URL("shop")+path, "", append(headers, "Authorization", "Bearer a-token-of-the-till-567")...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const list, one = "/v1/orders", "/v1/orders/or_9"
	for range 2 { // cold, then from memory
		for _, c := range []struct{ name, value, total string }{
			{"Shop-Account", "", "2026-01"}, {"Shop-Account", "ac_1", "ac_12026-01"}, {"Shop-Account", "ac_2", "ac_22026-01"},
			{"Shop-Version", "2026-01", "2026-01"}, {"Shop-Version", "2020-01", "2020-01"},
		} {
			if r := get(list, c.name, c.value); string(r.Body) != `{"data":[{"id":"or_9","total":"`+c.total+`"}]}` {
				t.Errorf("%s %s: the list is %s", c.name, c.value, r.Body)
			} else if vary := r.Header.Get("Vary"); !strings.Contains(vary, "Shop-Account") || !strings.Contains(vary, "Shop-Version") {
				t.Errorf("Vary: %s", vary)
			}
			if r := get(one, c.name, c.value); string(r.Body) != `{"id":"or_9","total":"`+c.total+`"}` {
				t.Errorf("%s %s: the order is %s", c.name, c.value, r.Body)
			}
		}
	}
	s.mu.Lock()
	asked := len(s.headers)
	s.mu.Unlock()
	if asked != 7 { // four lists and four orders, of which one was in its list
		t.Errorf("upstream was asked %d times", asked)
	}
	for _, c := range []struct {
		path, token string
		headers     []string
		status      int
		says        string
	}{
		{list, "till", []string{"X-Sudo", "root"}, http.StatusBadRequest, "X-Sudo"},
		{list, "few", []string{"X-Unknown", "root"}, http.StatusBadRequest, "X-Unknown"},
		{list, "till", []string{"X-Http-Method-Override", "DELETE"}, http.StatusBadRequest, "cannot replace the method"},
		{list, "till", []string{"Accept", "application/vnd.shop.full+json"}, http.StatusOK, "data"},
		{list + "?understudy.order=asc", "till", []string{"Shop-Account", "ac_1"}, http.StatusBadRequest, "without the header Shop-Account"},
		{list + "?understudy.as_of=2026-01-01", "till", []string{"Shop-Account", "ac_1"}, http.StatusBadRequest, "no history is kept"},
		{list, "few", []string{"Shop-Account", "ac_1"}, http.StatusForbidden, "doesn't know which of them"},
		{one, "few", []string{"Shop-Account", "ac_1"}, http.StatusForbidden, "doesn't know which of them"},
	} {
		token := map[string]string{"till": "a-token-of-the-till-567", "few": "a-token-of-the-few-8901"}[c.token]
		r, err := rig.Ask(http.MethodGet, "", house.URL("shop")+c.path, "", append(c.headers, "Authorization", "Bearer "+token)...)
		checktest.MustNoError(t, err, "%s of %s with %q", c.path, c.token, c.headers)
		checktest.Equal(t, r.Status, c.status, "%s of %s with %q: r.Status", c.path, c.token, c.headers)
		checktest.Contains(t, string(r.Body), c.says, "%s of %s with %q: string(r.Body)", c.path, c.token, c.headers)
	}
	r, err := rig.Ask(http.MethodGet, "", house.URL("viewer")+"/-/search?q=has:id", "")
	checktest.MustNoError(t, err, "a search finds")
	checktest.Lacks(t, string(r.Body), "ac_1", "a search finds: string(r.Body)")
	checktest.Contains(t, string(r.Body), "or_9", "a search finds: string(r.Body)")
}

// Upstream is asked whether a page has changed. When it has not, the page is as new as one
// that came, also from the store of a server that was started again.
func TestUnchangedPagesAreConfirmed(t *testing.T) {
	t.Parallel()
	s, house := openShop(t)
	s.etag = "v1"
	get := func(token string, headers ...string) rig.Reply {
		t.Helper()
		r, err := rig.Ask(http.MethodGet, "", house.URL("shop")+"/v1/orders", "", append(headers, "Authorization", "Bearer "+token)...)
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("%v, %d %s", err, r.Status, r.Body)
		}
		return r
	}
	const till, part = "a-token-of-the-till-567", "a-token-of-a-part-8901"
	first := get(till)
	if trace := first.Header.Get("Shop-Trace"); trace != "trace-1" {
		t.Errorf("passed back: %q", trace)
	}
	// One credential has one key asked for once a second.
	told := func(enough func() bool) (r rig.Reply) {
		for end := time.Now().Add(rig.Patience); time.Now().Before(end); {
			r = get(till, "Cache-Control", "max-age=0")
			s.mu.Lock()
			done := enough()
			s.mu.Unlock()
			if done {
				return r
			}
		}
		t.Fatal("upstream was not asked")
		return r
	}
	again := told(func() bool { return s.unchanged == 2 })
	checktest.Equal(t, string(again.Body), string(first.Body), "confirmed: string(again.Body)")
	checktest.Equal(t, again.Header.Get("Age"), "0", `confirmed: again.Header.Get("Age")`)
	checktest.Equal(t, again.Header.Get("Shop-Trace"), "trace-1", `confirmed: again.Header.Get("Shop-Trace")`)
	s.mu.Lock()
	if len(s.headers) != 3 {
		t.Errorf("of %d requests %d were answered with 304", len(s.headers), s.unchanged)
	}
	s.etag = "v2"
	s.mu.Unlock()
	if r := told(func() bool { return len(s.headers) == 4 }); r.Header.Get("Shop-Trace") != "trace-4" {
		t.Errorf("a page that has changed: %v", r.Header)
	}
	if r := get(part); r.Header.Get("Shop-Trace") != "" || strings.Contains(string(r.Body), "2026-01") {
		t.Errorf("who does not see everything gets %v %s", r.Header, r.Body)
	}
	if r := get(till); r.Header.Get("Etag") == `"v2"` {
		t.Error("upstream's validator was passed on") // ours says what this role sees
	}
}

// An API that goes on answering for a record that was deleted: the record is gone here, by
// the answer to the write as by that to a read.
func TestDeletedRecordsGo(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"a write", "a read"} {
		s, house := openShop(t)
		till := []string{"Authorization", "Bearer a-token-of-the-till-567", "Cache-Control", "max-age=0"}
		send := func(method, path string) rig.Reply {
			t.Helper()
			r, err := rig.Ask(method, "", house.URL("shop")+path, "", till...)
			if err != nil || r.Status != http.StatusOK {
				t.Fatalf("%s %s: %v, %d %s", method, path, err, r.Status, r.Body)
			}
			return r
		}
		found := func() bool {
			r := rig.Get(t, "", house.URL("viewer")+"/-/search?q=has:id")
			return r.Status == http.StatusOK && strings.Contains(string(r.Body), `"id":"or_9"`)
		}
		send(http.MethodGet, "/v1/orders")
		if !found() {
			t.Fatalf("the record is not held: %s", rig.Get(t, "", house.URL("viewer")+"/-/search?q=has:id").Body)
		}
		if by == "a write" {
			send(http.MethodDelete, "/v1/orders/or_9")
		} else {
			s.mu.Lock()
			s.deleted = true
			s.mu.Unlock()
			if r := send(http.MethodGet, "/v1/orders/or_9"); string(r.Body) != `{"id":"or_9","deleted":true}` {
				t.Errorf("the deleted one: %s", r.Body)
			}
		}
		if found() {
			t.Errorf("found after %s told that it is deleted", by)
		}
	}
}
