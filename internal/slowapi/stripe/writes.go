// Writes: nested forms, and what they make, change and delete.

package stripe

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// params are the parameters of a write, as they came: names have brackets, as in
// metadata[key] and items[0][price].
type params = url.Values

// membersOf are the members of a parameter: of metadata, those of metadata[x].
func membersOf(p params, name string) map[string]string {
	found := map[string]string{}
	for full, values := range p {
		if inner, ok := strings.CutPrefix(full, name+"["); ok && strings.HasSuffix(inner, "]") {
			found[strings.TrimSuffix(inner, "]")] = values[len(values)-1]
		}
	}
	return found
}

// write does a write and answers with its record.
func (a *API) write(k *kind, q *table.Request, do func(*API, *table.Request, params) format.Answer) format.Answer {
	p, err := url.ParseQuery(string(q.Body))
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "", "The body is not a form.")
	}
	for name := range p {
		base, _, _ := strings.Cut(name, "[")
		if !slices.Contains(k.takes, base) && !slices.Contains([]string{"metadata", "expand"}, base) && !slices.Contains(more[k.name], base) {
			return unknown(name)
		}
	}
	return do(a, q, p)
}

// more are the parameters of a kind's creation that are no text of the record.
var more = map[string][]string{
	"customers":     {"address"},
	"refunds":       {"charge", "payment_intent", "amount", "reason"},
	"subscriptions": {"customer", "items"},
}

// set are the values that parameters set. Metadata are added to those there were;
// an empty value takes one out.
func (k *kind) set(p params, was map[string]string) table.Values {
	v, metadata := table.Values{}, map[string]string{}
	maps.Copy(metadata, was)
	for key, value := range membersOf(p, "metadata") {
		if metadata[key] = value; value == "" {
			delete(metadata, key)
		}
	}
	v["metadata"] = metadata
	for _, name := range k.takes {
		if value, given := p[name]; given {
			if v[name] = value[0]; value[0] == "" {
				v[name] = nil
			}
		}
	}
	return v
}

// update changes a record.
func update(k *kind) func(*API, *table.Request, params) format.Answer {
	return func(a *API, q *table.Request, p params) format.Answer {
		r := a.find(q, k, q.Vars[0])
		if r == nil {
			return missing(http.StatusNotFound, k.one, q.Vars[0], "id")
		}
		was, _ := r.Values["metadata"].(map[string]string)
		v := k.set(p, was)
		if k == customers {
			maps.Copy(v, a.address(p))
		}
		r.Values = r.Values.With(v)
		if k == customers {
			a.event(r, "customer.updated", a.world.Clock(), k.one, key(q))
		}
		return a.show(k, q, r)
	}
}

// key is the Idempotency-Key of a write, nil for none.
func key(q *table.Request) any {
	if k := q.Header.Get("Idempotency-Key"); k != "" {
		return k
	}
	return nil
}

// address are the values of an address that a form has.
func (a *API) address(p params) table.Values {
	given := membersOf(p, "address")
	if len(given) == 0 {
		return nil
	}
	v := table.Values{}
	for name, value := range given {
		v[name] = value
	}
	return table.Values{"address": table.Part{Template: a.shapes["address"], Values: v}}
}

func createCustomer(a *API, q *table.Request, p params) format.Answer {
	v := customers.set(p, nil)
	v["invoice_prefix"] = strings.ToUpper(a.id("p")[2:10])
	maps.Copy(v, a.address(p))
	r := a.add(customers, q.Header.Get("Stripe-Account"), a.world.Clock(), v)
	a.event(r, "customer.created", a.world.Clock(), "customer", key(q))
	return a.show(customers, q, r)
}

func deleteCustomer(a *API, q *table.Request, r *table.Row) format.Answer {
	a.event(r, "customer.deleted", a.world.Clock(), "customer", key(q))
	a.world.Kinds["customers"].Delete(r)
	return format.Answer{Status: http.StatusOK, Body: []byte(`{"id":"` + r.ID + `","object":"customer","deleted":true}`)}
}

func createRefund(a *API, q *table.Request, p params) format.Answer {
	charge := a.find(q, charges, p.Get("charge"))
	if charge == nil {
		return missing(http.StatusNotFound, charges.one, p.Get("charge"), "charge")
	}
	left := charge.Number("amount_captured") - charge.Number("amount_refunded")
	amount := left
	if text := p.Get("amount"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return refuse(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "amount", "Invalid integer: "+text)
		}
		amount = n
	}
	if amount > left || left == 0 {
		return refuse(http.StatusBadRequest, "invalid_request_error", "charge_already_refunded", "",
			fmt.Sprintf("Charge %s has already been refunded, or has less than %d left.", charge.ID, amount))
	}
	reason := any(nil)
	if text := p.Get("reason"); text != "" {
		reason = text
	}
	r := a.refund(charge, amount, reason, a.world.Clock())
	r.Values = r.Values.With(refunds.set(p, nil))
	return a.show(refunds, q, r)
}

func createSubscription(a *API, q *table.Request, p params) format.Answer {
	c := a.find(q, customers, p.Get("customer"))
	if c == nil {
		return missing(http.StatusBadRequest, customers.one, p.Get("customer"), "customer")
	}
	var items []item
	for n := 0; ; n++ {
		one := membersOf(p, "items["+strconv.Itoa(n)+"]")
		if len(one) == 0 {
			break
		}
		price := a.find(q, prices, one["price"])
		if price == nil {
			return missing(http.StatusBadRequest, prices.one, one["price"], fmt.Sprintf("items[%d][price]", n))
		}
		quantity, err := strconv.ParseInt(one["quantity"], 10, 64)
		if err != nil {
			quantity = 1
		}
		items = append(items, item{price, quantity})
	}
	if len(items) == 0 {
		return refuse(http.StatusBadRequest, "invalid_request_error", "parameter_missing", "items", "Missing required param: items.")
	}
	r := a.subscribe(c, a.world.Clock(), items, membersOf(p, "metadata"))
	return a.show(subscriptions, q, r)
}

func cancelSubscription(a *API, q *table.Request, r *table.Row) format.Answer {
	if r.Text("status") == "canceled" {
		return missing(http.StatusNotFound, subscriptions.one, r.ID, "subscription")
	}
	r.Values = r.Values.With(table.Values{"status": "canceled", "canceled_at": a.world.Clock(), "cancel_reason": "cancellation_requested"})
	a.event(r, "customer.subscription.deleted", a.world.Clock(), "subscription", key(q))
	return a.show(subscriptions, q, r)
}

// edit makes a change from outside: the texts that a write takes, and metadata.
func (a *API) edit(name string, _ *table.Row, set table.Values) (table.Values, error) {
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	out := table.Values{}
	for field, value := range set {
		switch text, isText := value.(string); {
		case field == "metadata":
			metadata := map[string]string{}
			raw, err := json.Marshal(value)
			if err == nil {
				err = json.Unmarshal(raw, &metadata)
			}
			if err != nil {
				return nil, fmt.Errorf("metadata must be an object of texts")
			}
			out[field] = metadata
		case !isText || !slices.Contains(kinds[i].takes, field):
			return nil, fmt.Errorf("%s of %s cannot be set; only texts of %v, and metadata", field, name, kinds[i].takes)
		default:
			out[field] = text
		}
	}
	return out, nil
}
