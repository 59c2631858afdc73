// Kinds: the types of records, with their paths, filters and parameters.

package stripe

import (
	"net/http"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// kind is one type of record.
type kind struct {
	name   string // the name of the kind's list in paths
	object string // the value of the field object, which is also the name of the template
	prefix string // the prefix of the ids of its records
	// filters are the parameters that select records by an equal value. Every list has the filter created too, except
	// the list of subscription items.
	filters   []string
	writable  []string // the strings in a record that a write may set; nil if records cannot be updated
	hasSearch bool     // whether records of the kind can be searched
}

var (
	customers = &kind{name: "customers", object: "customer", prefix: "cus", filters: []string{"email"},
		writable: []string{"name", "email", "phone", "description"}, hasSearch: true}
	charges = &kind{name: "charges", object: "charge", prefix: "ch", filters: []string{"customer", "payment_intent"},
		writable: []string{"description"}, hasSearch: true}
	paymentIntents = &kind{name: "payment_intents", object: "payment_intent", prefix: "pi", filters: []string{"customer"},
		writable: []string{"description"}, hasSearch: true}
	refunds  = &kind{name: "refunds", object: "refund", prefix: "re", filters: []string{"charge", "payment_intent"}, writable: []string{}}
	products = &kind{name: "products", object: "product", prefix: "prod", filters: []string{"active"}, writable: []string{"name",
		"description"}, hasSearch: true}
	prices = &kind{name: "prices", object: "price", prefix: "price", filters: []string{"active", "currency", "product", "type"},
		writable: []string{"lookup_key"}, hasSearch: true}
	subscriptions = &kind{name: "subscriptions", object: "subscription", prefix: "sub", filters: []string{"customer", "collection_method",
		"status"},
		writable: []string{"description"}, hasSearch: true}
	subscriptionItems = &kind{name: "subscription_items", object: "subscription_item", prefix: "si", filters: []string{"subscription"}}
	invoices          = &kind{name: "invoices", object: "invoice", prefix: "in",
		filters: []string{"customer", "collection_method", "status", "subscription"}, writable: []string{"description"}, hasSearch: true}
	events = &kind{name: "events", object: "event", prefix: "evt", filters: []string{"type"}}
)

// kinds are all kinds.
var kinds = []*kind{customers, charges, paymentIntents, refunds, products, prices, subscriptions, subscriptionItems, invoices, events}

// paths returns all routes.
func (a *API) paths() table.Routes {
	get := func(do table.Handler) map[string]table.Handler { return map[string]table.Handler{http.MethodGet: do} }
	all := table.Routes{
		{Pattern: "/v1/balance", Handlers: get(a.balance)},
		{Pattern: "/v2/core/events", List: true, Handlers: get(a.listV2Events)},
		{Pattern: "/v2/core/events/*", Handlers: get(a.showV2Event)},
		{Pattern: "/v1/invoices/*/lines", List: true, Handlers: get(a.listInvoiceLines)},
	}
	creates := map[*kind]func(*API, *table.Request, params) format.Answer{
		customers: createCustomer, refunds: createRefund, subscriptions: createSubscription,
	}
	deletes := map[*kind]func(*API, *table.Request, *table.Row) format.Answer{customers: deleteCustomer, subscriptions: cancelSubscription}
	for _, k := range kinds {
		list := get(func(q *table.Request) format.Answer { return a.list(k, q) })
		one := get(func(q *table.Request) format.Answer { return a.retrieve(k, q) })
		if create := creates[k]; create != nil {
			list[http.MethodPost] = func(q *table.Request) format.Answer { return a.write(k, q, create) }
		}
		if k.writable != nil {
			one[http.MethodPost] = func(q *table.Request) format.Answer { return a.write(k, q, update(k)) }
		}
		if remove := deletes[k]; remove != nil {
			one[http.MethodDelete] = func(q *table.Request) format.Answer {
				if r := a.find(q, k, q.Vars[0]); r != nil {
					return remove(a, q, r)
				}
				return newMissingRecord(http.StatusNotFound, k.object, q.Vars[0], "id")
			}
		}
		if k.hasSearch {
			all = append(all, table.Route{Pattern: "/v1/" + k.name + "/search", List: true,
				Handlers: get(func(q *table.Request) format.Answer { return a.search(k, q) })})
		}
		path := "/v1/" + k.name
		all = append(all, table.Route{Pattern: path, List: true, Handlers: list}, table.Route{Pattern: path + "/*", Handlers: one})
	}
	return all
}

// kindOf returns the kind of a record by the prefix of its id. It returns nil if no kind has the prefix.
func kindOf(id string) *kind {
	for _, k := range kinds {
		if len(id) > len(k.prefix) && id[:len(k.prefix)+1] == k.prefix+"_" {
			return k
		}
	}
	return nil
}
