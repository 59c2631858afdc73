// Stripe lists: random list requests, answered from records by Understudy and by the
// simulated Stripe itself, compared byte for byte.

package vendors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// stripeFilters are the filters of each list, less those on its time.
var stripeFilters = map[string][]string{
	"customers": {"email"}, "charges": {"customer", "payment_intent"}, "payment_intents": {"customer"},
	"refunds": {"charge", "payment_intent"}, "products": {"active"}, "prices": {"active", "currency", "product", "type"},
	"subscriptions": {"customer", "collection_method", "status"},
	"invoices":      {"customer", "collection_method", "status"}, "events": {"type"},
}

// stripeStage is a simulated Stripe and Understudy in front of it, which holds all its records.
type stripeStage struct {
	*testing.T
	api, drop, viewer string
	rng               *rand.Rand
	rows              map[string][]map[string]any // of each kind, the newest first
	kinds             []string

	asked, composed, held int
	others                map[string]int // how the others came
}

func newStripeStage(t *testing.T) *stripeStage {
	t.Helper()
	s := &stripeStage{T: t, api: rig.StartAPI(t, "--shape", "stripe", "--latency", "0s", "--records", "80", "--arrivals", "0").URL("slowapi"),
		rng: rig.Random(t), others: map[string]int{}}
	for name := range stripeFilters {
		s.kinds = append(s.kinds, name)
	}
	slices.Sort(s.kinds)
	dir := t.TempDir()
	for name, text := range map[string]string{"stripe.token": "sk_test_slowapitoken", "till.secret": rig.StripeToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  stripe: {spec: stripe, user: acct_1, secret: "file:stripe.token", upstream: "` + s.api + `", listen: "127.0.0.1:0", rate: 2000, concurrency: 50,
    polls: [], lists_from: records, sync: [` + strings.Join(s.kinds, ", ") + `]}
credentials:
  - {name: till, source: stripe, secret: "file:till.secret", role: all, rate: 2000}
mirror: {newest: 1s}
sync: {sweep: 10s}
log: {access: access.log}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	s.drop, s.viewer = house.URL("stripe"), house.URL("viewer")
	s.learn(time.Time{})
	return s
}

// learn reads every record from the simulated Stripe, and waits until Understudy has looked
// at them all after a time.
func (s *stripeStage) learn(since time.Time) {
	s.Helper()
	s.rows = map[string][]map[string]any{}
	for _, kind := range s.kinds {
		for target, more := "/v1/"+kind+"?limit=100&", true; more; {
			var list struct {
				Data []map[string]any
				More bool `json:"has_more"`
			}
			after := ""
			if n := len(s.rows[kind]); n > 0 {
				after = "&starting_after=" + s.rows[kind][n-1]["id"].(string)
			}
			all := ""
			if kind == "subscriptions" {
				all = "&status=all"
			}
			r := rig.Get(s.T, "sk_test_slowapitoken:", s.api+target+after+all)
			if err := json.Unmarshal(r.Body, &list); err != nil || r.Status != http.StatusOK {
				s.Fatalf("%s: %d %s", kind, r.Status, r.Body)
			}
			s.rows[kind], more = append(s.rows[kind], list.Data...), list.More
		}
	}
	rig.AwaitSwept(s.T, s.viewer, "stripe", s.kinds, since)
}

// request draws a list request.
func (s *stripeStage) request() (kind string, q url.Values) {
	kind, q = s.kinds[s.rng.IntN(len(s.kinds))], url.Values{}
	row := func() map[string]any { return s.rows[kind][s.rng.IntN(len(s.rows[kind]))] }
	for _, name := range stripeFilters[kind] {
		if s.rng.IntN(4) == 0 {
			q.Set(name, fmt.Sprint(cmp.Or[any](row()[name], "none")))
		}
	}
	if kind == "subscriptions" && s.rng.IntN(4) == 0 {
		q.Set("status", "all")
	}
	for _, name := range []string{"created", "created[gt]", "created[gte]", "created[lt]", "created[lte]"} {
		if s.rng.IntN(8) == 0 {
			q.Set(name, strconv.FormatInt(int64(row()["created"].(float64))+s.rng.Int64N(3)-1, 10))
		}
	}
	if s.rng.IntN(3) > 0 {
		q.Set("limit", strconv.Itoa(1+s.rng.IntN(1+s.rng.IntN(100))))
	}
	switch s.rng.IntN(5) {
	case 0:
		q.Set("starting_after", row()["id"].(string))
	case 1:
		q.Set("ending_before", row()["id"].(string))
	}
	return kind, q
}

// compare asks both, and returns the page.
func (s *stripeStage) compare(kind string, q url.Values) (ids []string, more bool) {
	s.Helper()
	s.asked++
	target := "/v1/" + kind + "?" + q.Encode()
	want := rig.Get(s.T, "sk_test_slowapitoken:", s.api+target)
	r := rig.Get(s.T, rig.StripeToken+":", s.drop+target)
	how := r.Header.Get("Cache-Status")
	if r.Status != want.Status || !bytes.Equal(r.Body, want.Body) {
		s.Fatalf("%s: %d, want %d (%s)\n%s\n%d requests were equal", target, r.Status, want.Status, how, rig.FirstDifference(want.Body, r.Body), s.asked-1)
	}
	switch {
	case strings.Contains(how, "composed"):
		s.composed++
	case strings.Contains(how, "hit;"): // what is held and fresh is as good
		s.held++
	default:
		s.others[how]++
	}
	var list struct {
		Data []struct{ ID string }
		More bool `json:"has_more"`
	}
	if err := json.Unmarshal(want.Body, &list); err != nil {
		s.Fatal(err)
	}
	for _, row := range list.Data {
		ids = append(ids, row.ID)
	}
	return ids, list.More
}

// round compares so many requests; half of them are pages that follow another, forward or back.
func (s *stripeStage) round(n int) {
	s.Helper()
	for end := s.asked + n; s.asked < end; {
		kind, q := s.request()
		ids, more := s.compare(kind, q)
		back := q.Has("ending_before")
		for pages := s.rng.IntN(4); more && len(ids) > 0 && pages > 0; pages-- {
			if s.rng.IntN(3) == 0 {
				back = !back
			}
			q.Del("starting_after")
			q.Del("ending_before")
			if back {
				q.Set("ending_before", ids[0])
			} else {
				q.Set("starting_after", ids[len(ids)-1])
			}
			ids, more = s.compare(kind, q)
		}
	}
}

// move lets the world go on: customers come and pay, change and go.
func (s *stripeStage) move() {
	s.Helper()
	rig.Control(s.T, s.api, "/-/advance", `{"customers":9,"seconds":90}`)
	rows := s.rows["customers"]
	at := s.rng.Perm(len(rows))
	rig.Control(s.T, s.api, "/-/edit", fmt.Sprintf(`{"kind":"customers","records":[{"id":%q,"set":{"name":"Another","email":"another@example.com"}},{"id":%q,"delete":true}]}`,
		rows[at[0]]["id"], rows[at[1]]["id"]))
	s.learn(time.Now())
}

// Every list equals Stripe's byte for byte, before and after changes.
func TestStripeListsFromRecords(t *testing.T) {
	t.Parallel()
	n := sample.Count(300, 5000)
	s := newStripeStage(t)
	s.round(n / 2)
	s.move()
	s.round(n / 2)
	t.Logf("%d requests the same, %d of them composed, %d held; the others: %v", s.asked, s.composed, s.held, s.others)
	if s.composed+s.held < s.asked*98/100 || s.composed < s.asked/2 {
		t.Errorf("only %d of %d were made from records: %v", s.composed, s.asked, s.others)
	}
}
