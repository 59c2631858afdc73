// Tests of the shape of Stripe: cursors both ways, expansion, accounts, repeated
// writes, searches, the pages of v2.
package stripe_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

type record = slowapitest.Record

// paid sends a request to a server in Stripe's shape.
func paid(r slowapitest.API, method, target, form string, header ...string) (*http.Response, record) {
	r.T.Helper()
	resp, raw := r.Call(method, target, form, append([]string{"Authorization", "Bearer sk_test_slowapitoken"}, header...)...)
	var one record
	if err := json.Unmarshal([]byte(raw), &one); err != nil {
		r.T.Fatalf("%s %s: %v %.200s", method, target, err, raw)
	}
	return resp, one
}

// ids are those of a list's records.
func ids(list record) []string {
	var found []string
	data, _ := list["data"].([]any)
	for _, row := range data {
		found = append(found, row.(record)["id"].(string))
	}
	return found
}

func TestStripeCursorsLeadBothWays(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 25})
	_, whole := paid(r, "GET", "/v1/customers?limit=100", "")
	all := ids(whole)
	if len(all) != 25 || whole["has_more"] != false {
		t.Fatalf("%d customers", len(all))
	}
	var forth []string
	for after, more := "", true; more; {
		_, page := paid(r, "GET", "/v1/customers?limit=7&starting_after="+after, "")
		forth = append(forth, ids(page)...)
		after, more = forth[len(forth)-1], page["has_more"].(bool)
	}
	var back []string
	for before, more := all[24], true; more; {
		_, page := paid(r, "GET", "/v1/customers?limit=7&ending_before="+before, "")
		back = append(ids(page), back...)
		before, more = back[0], page["has_more"].(bool)
	}
	if strings.Join(forth, " ") != strings.Join(all, " ") || strings.Join(back, " ") != strings.Join(all[:24], " ") {
		t.Errorf("forth %v\nback %v\nall %v", forth, back, all)
	}
	if resp, one := paid(r, "GET", "/v1/customers?starting_after=cus_none", ""); resp.StatusCode != 400 || !strings.Contains(text(one),
		"resource_missing") {
		t.Errorf("an unknown cursor: %d %v", resp.StatusCode, one)
	}
}

func text(v any) string { raw, _ := json.Marshal(v); return string(raw) }

func TestStripeExpandsWithoutRewriting(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 25})
	_, list := paid(r, "GET", "/v1/charges?limit=1&expand[]=data.customer&expand[]=data.payment_intent.latest_charge", "")
	row := list["data"].([]any)[0].(record)
	if row["customer"].(record)["object"] != "customer" || row["payment_intent"].(record)["latest_charge"].(record)["id"] != row["id"] {
		t.Errorf("%s", text(row))
	}
	if _, plain := paid(r, "GET", "/v1/charges/"+row["id"].(string), ""); plain["customer"] != row["customer"].(record)["id"] {
		t.Errorf("then alone: %v", plain["customer"])
	}
	if resp, _ := paid(r, "GET", "/v1/charges?expand[]=data.nothing", ""); resp.StatusCode != 400 {
		t.Errorf("a member that is none: %d", resp.StatusCode)
	}
	if _, old := paid(r, "GET", "/v1/payment_intents?limit=1", "", "Stripe-Version",
		"2020-08-27"); old["data"].([]any)[0].(record)["charges"] == nil {
		t.Error("an old version has no list of charges")
	}
}

func TestStripeDoesAWriteOnce(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 5})
	form := url.Values{"name": {"Ada"}, "metadata[order]": {"7"}, "address[city]": {"Bern"}}.Encode()
	first, made := paid(r, "POST", "/v1/customers", form, "Idempotency-Key", "k1")
	again, same := paid(r, "POST", "/v1/customers", form, "Idempotency-Key", "k1")
	checktest.Equal(t, first.StatusCode, 200, "first.StatusCode")
	checktest.Equal(t, made["id"], same["id"], `made["id"]`)
	checktest.Equal(t, again.Header.Get("Idempotent-Replayed"), "true", `again.Header.Get("Idempotent-Replayed")`)
	checktest.Equal(t, made["metadata"].(record)["order"], "7", `made["metadata"].(record)["order"]`)
	checktest.Equal(t, made["address"].(record)["city"], "Bern", `made["address"].(record)["city"]`)
	if resp, one := paid(r, "POST", "/v1/customers", "name=Bea", "Idempotency-Key", "k1"); resp.StatusCode != 400 ||
		!strings.Contains(text(one), "idempotency_error") {
		t.Errorf("the key with another form: %d %v", resp.StatusCode, one)
	}
	id := made["id"].(string)
	_, changed := paid(r, "POST", "/v1/customers/"+id, "metadata[order]=&metadata[x]=y")
	if text(changed["metadata"]) != `{"x":"y"}` || changed["name"] != "Ada" {
		t.Errorf("%v", changed)
	}
	_, price := paid(r, "GET", "/v1/prices?limit=1", "")
	_, sub := paid(r, "POST", "/v1/subscriptions", "customer="+id+"&items[0][price]="+ids(price)[0]+"&items[0][quantity]=2")
	if !strings.Contains(text(sub["items"]), `"quantity":2`) || sub["latest_invoice"] == nil {
		t.Errorf("%s", text(sub))
	}
	if resp, gone := paid(r, "DELETE", "/v1/customers/"+id, ""); resp.StatusCode != 200 || gone["deleted"] != true {
		t.Errorf("%d %v", resp.StatusCode, gone)
	}
	if resp, one := paid(r, "POST", "/v1/customers", "nme=x"); resp.StatusCode != 400 || !strings.Contains(text(one), "parameter_unknown") {
		t.Errorf("a parameter that is none: %d %v", resp.StatusCode, one)
	}
}

func TestStripeKeepsAccountsApartAndFinds(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 60})
	_, own := paid(r, "GET", "/v1/customers?limit=100", "")
	_, other := paid(r, "GET", "/v1/customers?limit=100", "", "Stripe-Account", "acct_1SlowapiConnect1")
	checktest.MustEqual(t, len(ids(own)), 60, "len(ids(own))")
	checktest.MustEqual(t, len(ids(other)), 3, "len(ids(other))")
	checktest.Lacks(t, text(own), ids(other)[0], "text(own)")
	if resp, _ := paid(r, "GET", "/v1/customers", "", "Stripe-Account", "acct_none"); resp.StatusCode != 403 {
		t.Errorf("another's account: %d", resp.StatusCode)
	}
	found, page := 0, ""
	for {
		_, one := paid(r, "GET", "/v1/customers/search?limit=10&page="+page+"&query="+
			url.QueryEscape(`metadata["tier"]:"pro" AND email~"customer"`), "")
		for _, row := range one["data"].([]any) {
			if row.(record)["metadata"].(record)["tier"] != "pro" {
				t.Errorf("%s", text(row))
			}
			found++
		}
		next, more := one["next_page"].(string)
		if page = next; !more {
			break
		}
	}
	if found < 11 || found > 50 {
		t.Errorf("%d customers found", found)
	}
	events := 0
	for next := "/v2/core/events?limit=50"; next != ""; {
		_, one := paid(r, "GET", next, "")
		events += len(ids(one))
		next, _ = one["next_page_url"].(string)
	}
	if events < 120 {
		t.Errorf("%d events", events)
	}
	if resp, one := paid(r, "GET", "/v1/balance", "", "Authorization", "Bearer sk_wrong"); resp.StatusCode != 401 || one["error"] == nil {
		t.Errorf("a wrong key: %d", resp.StatusCode)
	}
}

func TestStripeForgetsAnIdempotencyKey(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 3, Now: func() time.Time { return now }})
	made := func() any {
		_, one := paid(r, "POST", "/v1/customers", "name=Ada", "Idempotency-Key", "k")
		return one["id"]
	}
	first := made()
	now = now.Add(23 * time.Hour)
	if again := made(); again != first {
		t.Errorf("within a day %v is made again: %v", first, again)
	}
	now = now.Add(2 * time.Hour)
	if later := made(); later == first {
		t.Errorf("after a day %v is still the answer", first)
	}
}

// Refunds of a charge add up to what was paid, and the balance falls by them.
func TestStripeRefundsNoMoreThanWasPaid(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "stripe", Records: 30})
	balance := func() float64 {
		_, one := paid(r, "GET", "/v1/balance", "")
		return one["available"].([]any)[0].(record)["amount"].(float64)
	}
	_, list := paid(r, "GET", "/v1/charges?limit=100", "")
	for _, row := range list["data"].([]any) {
		charge := row.(record)
		left := charge["amount_captured"].(float64) - charge["amount_refunded"].(float64)
		if left < 2 {
			continue
		}
		had, of := balance(), "charge="+charge["id"].(string)
		if resp, one := paid(r, "POST", "/v1/refunds", of+"&amount=1&reason=duplicate"); resp.StatusCode != 200 || one["reason"] != "duplicate" {
			t.Fatalf("a cent: %d %v", resp.StatusCode, one)
		}
		if resp, one := paid(r, "POST", "/v1/refunds", fmt.Sprint(of, "&amount=", int(left))); resp.StatusCode != 400 ||
			!strings.Contains(text(one), "charge_already_refunded") {
			t.Errorf("a cent too much: %d %v", resp.StatusCode, one)
		}
		if _, one := paid(r, "POST", "/v1/refunds", of); one["amount"] != left-1 {
			t.Errorf("the rest of %v: %v", left, one)
		}
		if now := balance(); now != had-left {
			t.Errorf("the balance is %v, was %v, and %v was refunded", now, had, left)
		}
		return
	}
	t.Error("no charge is to be refunded")
}
