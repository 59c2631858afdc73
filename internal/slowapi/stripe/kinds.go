// Kinds: the sorts of records, their paths, filters and parameters.

package stripe

import (
	"net/http"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// kind is one sort of record.
type kind struct {
	name   string // of its list, as in its path
	one    string // the object's name, and its template's
	prefix string // of ids
	// filters are the parameters that compare with a value of the record; created
	// is one of every list but those of the items of a subscription.
	filters []string
	// takes are the texts that a write may set.
	takes  []string
	search bool
}

var (
	customers = &kind{name: "customers", one: "customer", prefix: "cus", filters: []string{"email"},
		takes: []string{"name", "email", "phone", "description"}, search: true}
	charges = &kind{name: "charges", one: "charge", prefix: "ch", filters: []string{"customer", "payment_intent"},
		takes: []string{"description"}, search: true}
	paymentIntents = &kind{name: "payment_intents", one: "payment_intent", prefix: "pi", filters: []string{"customer"},
		takes: []string{"description"}, search: true}
	refunds  = &kind{name: "refunds", one: "refund", prefix: "re", filters: []string{"charge", "payment_intent"}, takes: []string{}}
	products = &kind{name: "products", one: "product", prefix: "prod", filters: []string{"active"}, takes: []string{"name",
		"description"}, search: true}
	prices = &kind{name: "prices", one: "price", prefix: "price", filters: []string{"active", "currency", "product", "type"},
		takes: []string{"lookup_key"}, search: true}
	subscriptions = &kind{name: "subscriptions", one: "subscription", prefix: "sub", filters: []string{"customer", "collection_method",
		"status"},
		takes: []string{"description"}, search: true}
	subscriptionItems = &kind{name: "subscription_items", one: "subscription_item", prefix: "si", filters: []string{"subscription"}}
	invoices          = &kind{name: "invoices", one: "invoice", prefix: "in",
		filters: []string{"customer", "collection_method", "status", "subscription"}, takes: []string{"description"}, search: true}
	events = &kind{name: "events", one: "event", prefix: "evt", filters: []string{"type"}}
)

// kinds are all of them.
var kinds = []*kind{customers, charges, paymentIntents, refunds, products, prices, subscriptions, subscriptionItems, invoices, events}

// paths returns all routes.
func (a *API) paths() table.Routes {
	get := func(do table.Handler) map[string]table.Handler { return map[string]table.Handler{http.MethodGet: do} }
	all := table.Routes{
		{Pattern: "/v1/balance", Handlers: get(a.balance)},
		{Pattern: "/v2/core/events", List: true, Handlers: get(a.v2Events)},
		{Pattern: "/v2/core/events/*", Handlers: get(a.v2Event)},
		{Pattern: "/v1/invoices/*/lines", List: true, Handlers: get(a.lines)},
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
		if k.takes != nil {
			one[http.MethodPost] = func(q *table.Request) format.Answer { return a.write(k, q, update(k)) }
		}
		if remove := deletes[k]; remove != nil {
			one[http.MethodDelete] = func(q *table.Request) format.Answer {
				if r := a.find(q, k, q.Vars[0]); r != nil {
					return remove(a, q, r)
				}
				return missing(http.StatusNotFound, k.one, q.Vars[0], "id")
			}
		}
		if k.search {
			all = append(all, table.Route{Pattern: "/v1/" + k.name + "/search", List: true,
				Handlers: get(func(q *table.Request) format.Answer { return a.search(k, q) })})
		}
		path := "/v1/" + k.name
		all = append(all, table.Route{Pattern: path, List: true, Handlers: list}, table.Route{Pattern: path + "/*", Handlers: one})
	}
	return all
}

// kindOf is the kind of an id, nil for none.
func kindOf(id string) *kind {
	for _, k := range kinds {
		if len(id) > len(k.prefix) && id[:len(k.prefix)+1] == k.prefix+"_" {
			return k
		}
	}
	return nil
}
