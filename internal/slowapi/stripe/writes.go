// Writes: nested forms, and handlers that create, change and delete records.

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

// params are the parameters of a write as the client sent them. Names may contain brackets, as in metadata[key] and
// items[0][price].
type params = url.Values

// membersOf returns the members of a nested parameter by their names. For metadata[x]=y it returns the member x with
// the value y.
func membersOf(p params, name string) map[string]string {
	found := map[string]string{}
	for full, values := range p {
		if inner, ok := strings.CutPrefix(full, name+"["); ok && strings.HasSuffix(inner, "]") {
			found[strings.TrimSuffix(inner, "]")] = values[len(values)-1]
		}
	}
	return found
}

// write parses the form of a write, checks the names of its parameters, and calls do.
func (a *API) write(k *kind, q *table.Request, do func(*API, *table.Request, params) format.Answer) format.Answer {
	p, err := url.ParseQuery(string(q.Body))
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "", "The body is not a form.")
	}
	for name := range p {
		base, _, _ := strings.Cut(name, "[")
		if base != "metadata" && base != "expand" && !slices.Contains(k.writable, base) && !slices.Contains(extraParams[k.name], base) {
			return newUnknownParam(name)
		}
	}
	return do(a, q, p)
}

// extraParams are the parameters of a write that do not set a string in the record, by the name of the kind.
var extraParams = map[string][]string{
	"customers":     {"address"},
	"refunds":       {"charge", "payment_intent", "amount", "reason"},
	"subscriptions": {"customer", "items"},
}

// values returns the values that the parameters set in a record. New metadata is added to the old metadata, and an
// empty value removes its key.
func (k *kind) values(p params, old map[string]string) table.Values {
	v, metadata := table.Values{}, map[string]string{}
	maps.Copy(metadata, old)
	for key, value := range membersOf(p, "metadata") {
		if metadata[key] = value; value == "" {
			delete(metadata, key)
		}
	}
	v["metadata"] = metadata
	for _, name := range k.writable {
		if value, given := p[name]; given {
			if v[name] = value[0]; value[0] == "" {
				v[name] = nil
			}
		}
	}
	return v
}

// update returns a handler that changes a record of a kind.
func update(k *kind) func(*API, *table.Request, params) format.Answer {
	return func(a *API, q *table.Request, p params) format.Answer {
		r := a.find(q, k, q.Vars[0])
		if r == nil {
			return newMissingRecord(http.StatusNotFound, k.object, q.Vars[0], "id")
		}
		old, _ := r.Values["metadata"].(map[string]string)
		v := k.values(p, old)
		if k == customers {
			maps.Copy(v, a.addressValues(p))
		}
		r.Values = r.Values.With(v)
		if k == customers {
			a.addEvent(r, "customer.updated", a.world.Clock(), k.object, idempotencyKey(q))
		}
		return a.show(k, q, r)
	}
}

// idempotencyKey returns the Idempotency-Key of a write. It returns nil if there is none.
func idempotencyKey(q *table.Request) any {
	if k := q.Header.Get("Idempotency-Key"); k != "" {
		return k
	}
	return nil
}

// addressValues returns the address in a form as values of a customer. It returns nil if the form has none.
func (a *API) addressValues(p params) table.Values {
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
	v := customers.values(p, nil)
	v["invoice_prefix"] = strings.ToUpper(a.id("p")[2:10])
	maps.Copy(v, a.addressValues(p))
	r := a.add(customers, q.Header.Get("Stripe-Account"), a.world.Clock(), v)
	a.addEvent(r, "customer.created", a.world.Clock(), "customer", idempotencyKey(q))
	return a.show(customers, q, r)
}

func deleteCustomer(a *API, q *table.Request, r *table.Row) format.Answer {
	a.addEvent(r, "customer.deleted", a.world.Clock(), "customer", idempotencyKey(q))
	a.world.Kinds["customers"].Delete(r)
	return format.Answer{Status: http.StatusOK, Body: []byte(`{"id":"` + r.ID + `","object":"customer","deleted":true}`)}
}

// createRefund refunds a charge. If no amount is given, it refunds everything that has not been refunded yet.
func createRefund(a *API, q *table.Request, p params) format.Answer {
	charge := a.find(q, charges, p.Get("charge"))
	if charge == nil {
		return newMissingRecord(http.StatusNotFound, charges.object, p.Get("charge"), "charge")
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
	r.Values = r.Values.With(refunds.values(p, nil))
	return a.show(refunds, q, r)
}

// createSubscription subscribes a customer to prices. If no quantity is given, it is 1.
func createSubscription(a *API, q *table.Request, p params) format.Answer {
	c := a.find(q, customers, p.Get("customer"))
	if c == nil {
		return newMissingRecord(http.StatusBadRequest, customers.object, p.Get("customer"), "customer")
	}
	var items []item
	for n := 0; ; n++ {
		members := membersOf(p, "items["+strconv.Itoa(n)+"]")
		if len(members) == 0 {
			break
		}
		price := a.find(q, prices, members["price"])
		if price == nil {
			return newMissingRecord(http.StatusBadRequest, prices.object, members["price"], fmt.Sprintf("items[%d][price]", n))
		}
		quantity, err := strconv.ParseInt(members["quantity"], 10, 64)
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
		return newMissingRecord(http.StatusNotFound, subscriptions.object, r.ID, "subscription")
	}
	r.Values = r.Values.With(table.Values{"status": "canceled", "canceled_at": a.world.Clock(), "cancel_reason": "cancellation_requested"})
	a.addEvent(r, "customer.subscription.deleted", a.world.Clock(), "subscription", idempotencyKey(q))
	return a.show(subscriptions, q, r)
}

// readEdit returns the values that POST /-/edit sets in a record. These are strings that a write may set, and metadata.
func (a *API) readEdit(name string, _ *table.Row, set table.Values) (table.Values, error) {
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
		case !isText || !slices.Contains(kinds[i].writable, field):
			return nil, fmt.Errorf("%s of %s cannot be set; only texts of %v, and metadata", field, name, kinds[i].writable)
		default:
			out[field] = text
		}
	}
	return out, nil
}
