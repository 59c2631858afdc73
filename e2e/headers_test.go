// Headers: what a spec names reaches the API, and nothing else does.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

const shopSpec = `name: shop
hosts: [{url: "https://shop.example.com"}]
auth: {style: bearer}
headers: {write: [Idempotency-Key], send: {Shop-Version: "2026-01"}}
kinds:
  - name: orders
    id: [id]
    lists: [{path: /v1/orders, key: data}]
    instances: [{path: "/v1/orders/{Order}", id: [Order]}]
    fields: [{name: id}, {name: total}]
`

// shop makes one order for each idempotency key, and loses its first answer.
type shop struct {
	mu      sync.Mutex
	orders  []string
	byKey   map[string]string
	headers []http.Header
	lost    bool
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"data":[]}`)
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

// A caller that got no answer sends its write again with the same key, and nothing is made twice.
func TestIdempotencyKeyArrives(t *testing.T) {
	t.Parallel()
	s := &shop{byKey: map[string]string{}}
	up := httptest.NewServer(s)
	defer up.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"shop.yaml": shopSpec, "shop.token": "upstreamtoken-1234", "till.secret": "a-token-of-the-till-567", "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  shop: {spec: ./shop.yaml, upstream: "` + up.URL + `", secret: "file:shop.token", listen: "127.0.0.1:0", polls: []}
credentials:
  - {name: till, source: shop, secret: "file:till.secret", role: all, allow: ["POST /v1/orders"]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := start(t, dir, "serve")
	headers := []string{"Authorization", "Bearer a-token-of-the-till-567", "Content-Type", "application/json", "Idempotency-Key", "k1",
		"X-Http-Method-Override", "DELETE", "Shop-Version", "1999-01"}
	order := func() reply {
		r, err := ask(http.MethodPost, "", house.URL("shop")+"/v1/orders", `{"total":5}`, headers...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := order(); r.status != http.StatusGatewayTimeout {
		t.Errorf("the first answer was lost: %d %s", r.status, r.body)
	}
	var made struct{ ID string }
	if r := order(); r.status != http.StatusCreated || json.Unmarshal(r.body, &made) != nil || made.ID != "or_1" {
		t.Errorf("sent again: %d %s", r.status, r.body)
	}
	if r, err := ask(http.MethodGet, "", house.URL("shop")+"/v1/orders", "", headers...); err != nil || r.status != http.StatusOK {
		t.Errorf("the list: %v, %d %s", err, r.status, r.body)
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
		if h.Get("Shop-Version") != "2026-01" || h.Get("X-Http-Method-Override") != "" || h.Get("Idempotency-Key") != key ||
			h.Get("Authorization") != "Bearer upstreamtoken-1234" {
			t.Errorf("request %d came with %v", i, h)
		}
	}
}
