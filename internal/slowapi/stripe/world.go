// The generated world: products, customers and their payments.

package stripe

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/table"
)

// The tags that separate the random numbers of different kinds of records.
const (
	tagID = iota + 0x7374720000
	tagCustomer
	tagPrice
)

// connectedAccount is the id of a connected account. Requests for its records have the id in the header Stripe-Account.
const connectedAccount = "acct_1SlowapiConnect1"

// customerDays is the number of days over which the creation times of customers are distributed.
const customerDays = 400

// generate adds the records of the main account, and fewer records of the connected account.
func (a *API) generate() {
	end := a.world.Epoch.Unix()
	for n, account := range []string{a.world.Account, connectedAccount} {
		for i := range 10 {
			a.addProduct(account, n*10+i, end-customerDays*86400)
		}
		count := a.world.Records
		if n > 0 {
			count = max(a.world.Records/20, 3)
		}
		for i := range count {
			a.generateCustomer(account, end-int64(count-1-i)*customerDays*86400/int64(count))
		}
	}
}

// id returns a new id that begins with prefix.
func (a *API) id(prefix string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	a.idCount++
	d := a.world.Random(tagID, a.idCount)
	size := 14
	if prefix != "cus" && prefix != "prod" {
		size = 24
	}
	out := []byte(prefix + "_")
	for range size {
		out = append(out, letters[d.IntBelow(len(letters))])
	}
	return string(out)
}

// add adds a record that has the values v and the values that every record has.
func (a *API) add(kind *kind, account string, at int64, v table.Values) *table.Row {
	id := a.id(kind.prefix)
	all := table.Values{"id": id, "account": account, "created": at, "metadata": map[string]string{}, "description": nil}
	maps.Copy(all, v)
	return a.world.Kinds[kind.name].Add(id, all)
}

// addProduct adds a product with a monthly and a yearly price.
func (a *API) addProduct(account string, i int, at int64) {
	name := []string{"Basic", "Team", "Business", "Support", "Storage"}[i%5] + " " + strconv.Itoa(1+i/5)
	product := a.add(products, account, at, table.Values{"active": true, "name": name, "default_price": nil})
	for n, interval := range []string{"month", "year"} {
		d := a.world.Random(tagPrice, 2*i+n)
		price := a.add(prices, account, at, table.Values{
			"active": true, "lookup_key": nil, "product": product.ID, "interval": interval, "type": "recurring", "currency": "usd",
			"unit_amount": int64(500+100*d.IntBelow(90)) * int64(1+9*n),
		})
		if n == 0 {
			product.Values = product.Values.With(table.Values{"default_price": price.ID})
		}
	}
}

// generateCustomer adds a customer with a payment. One in five has a subscription.
func (a *API) generateCustomer(account string, at int64) {
	n := len(a.world.Kinds["customers"].Rows())
	d := a.world.Random(tagCustomer, n)
	name := fake.Names()[d.IntBelow(len(fake.Names()))] + " " + fake.Names()[d.IntBelow(len(fake.Names()))]
	email := fmt.Sprintf("customer%d@example.com", n)
	v := table.Values{
		"name": name, "email": email, "currency": "usd", "invoice_prefix": strings.ToUpper(string(d.Hex(nil, 4))), "phone": nil,
		"address": table.Part{Template: a.shapes["address"], Values: table.Values{"city": "Bern", "country": "CH",
			"line1":       "Street " + strconv.Itoa(1+d.IntBelow(99)),
			"postal_code": strconv.Itoa(3000 + d.IntBelow(99))}},
		"metadata": map[string]string{"number": strconv.Itoa(n), "tier": []string{"free", "pro"}[d.IntBelow(2)]},
	}
	if d.IntBelow(2) == 0 {
		v["phone"] = string(fake.AppendPerson(nil, a.world.Seed, int64(n)))
	}
	if d.IntBelow(3) == 0 {
		v["description"] = fake.Body(d, false)
	}
	c := a.add(customers, account, at, v)
	a.addEvent(c, "customer.created", at, "customer", nil)
	a.generatePayment(c, &d, at+60)
	if d.IntBelow(5) == 0 {
		a.subscribe(c, at+120, a.choosePrices(account, &d), nil)
	}
}

// choosePrices returns one or two of an account's prices, chosen at random.
func (a *API) choosePrices(account string, d *fake.Rng) []item {
	all := a.world.Kinds["prices"].Select(func(r *table.Row) bool { return r.Text("account") == account }, "", true)
	at := d.IntBelow(len(all))
	items := []item{{all[at], int64(1 + d.IntBelow(3))}}
	if d.IntBelow(3) == 0 {
		items = append(items, item{all[(at+2)%len(all)], 1})
	}
	return items
}

// generatePayment adds a payment intent with its charge. One payment in ten fails, and one in twenty is refunded.
func (a *API) generatePayment(c *table.Row, d *fake.Rng, at int64) {
	v := table.Values{
		"amount": int64(500 + d.IntBelow(90000)), "amount_refunded": int64(0), "currency": "usd", "customer": c.ID, "name": c.Values["name"],
		"email": c.Values["email"], "phone": c.Values["phone"], "address": c.Values["address"], "payment_method": a.id("pm"),
		"fingerprint": string(d.Hex(nil, 8)),
		"last4":       strconv.Itoa(1000 + d.IntBelow(9000)), "risk": int64(d.IntBelow(60)),
		"paid": true, "refunded": false, "status": "succeeded",
		"intent_status": "succeeded", "failure_code": nil, "failure_message": nil, "network_status": "approved_by_network",
		"outcome": "authorized", "seller_message": "Payment complete.", "balance_transaction": a.id("txn"), "last_error": nil,
	}
	v["amount_captured"] = v["amount"]
	if d.IntBelow(10) == 0 {
		maps.Copy(v, table.Values{
			"amount_captured": int64(0), "paid": false, "status": "failed", "intent_status": "requires_payment_method",
			"failure_code": "card_declined", "failure_message": "Your card was declined.", "network_status": "declined_by_network",
			"outcome": "issuer_declined", "seller_message": "The bank did not say why it declined.", "balance_transaction": nil,
			"last_error": map[string]string{"code": "card_declined", "message": "Your card was declined.", "type": "card_error"},
		})
	}
	account := c.Text("account")
	intent := a.add(paymentIntents, account, at, v)
	charge := a.add(charges, account, at, v.With(table.Values{"payment_intent": intent.ID}))
	intent.Values = intent.Values.With(table.Values{"latest_charge": charge.ID})
	a.addEvent(charge, "charge."+charge.Text("status"), at, "charge", nil)
	if d.IntBelow(20) == 0 && charge.Values["paid"] == true {
		a.refund(charge, charge.Number("amount"), "requested_by_customer", at+86400)
	}
}

// refund adds a refund of a charge.
func (a *API) refund(charge *table.Row, amount int64, reason any, at int64) *table.Row {
	back := charge.Number("amount_refunded") + amount
	charge.Values = charge.Values.With(table.Values{"amount_refunded": back, "refunded": back == charge.Number("amount")})
	return a.add(refunds, charge.Text("account"), at, table.Values{
		"amount": amount, "charge": charge.ID, "currency": "usd", "customer": charge.Values["customer"],
		"payment_intent": charge.Values["payment_intent"],
		"payment_method": charge.Values["payment_method"], "reason": reason, "balance_transaction": a.id("txn"),
	})
}

// item is a price in a subscription, with its quantity.
type item struct {
	price    *table.Row
	quantity int64
}

// subscribe adds a subscription with its items and its paid invoice.
func (a *API) subscribe(c *table.Row, at int64, items []item, metadata map[string]string) *table.Row {
	account, total := c.Text("account"), int64(0)
	sub := a.add(subscriptions, account, at, table.Values{
		"customer": c.ID, "currency": "usd", "status": "active", "canceled_at": nil, "cancel_reason": nil,
		"collection_method": "charge_automatically",
	})
	if metadata != nil {
		sub.Values = sub.Values.With(table.Values{"metadata": metadata})
	}
	invoice := a.add(invoices, account, at, table.Values{"customer": c.ID, "subscription": sub.ID,
		"collection_method": "charge_automatically"})
	var shown, lines []table.Part
	for _, i := range items {
		v := table.Values{
			"period_start": at, "period_end": at + 30*86400, "price": table.Part{Template: a.shapes["price"], Values: i.price.Values},
			"quantity": i.quantity, "subscription": sub.ID,
		}
		r := a.add(subscriptionItems, account, at, v)
		amount := i.price.Number("unit_amount") * i.quantity
		total += amount
		shown = append(shown, table.Part{Template: a.shapes["subscription_item"], Values: r.Values})
		lines = append(lines, table.Part{Template: a.shapes["line_item"], Values: v.With(table.Values{
			"id": a.id("il"), "amount": amount, "invoice": invoice.ID, "subscription_item": r.ID, "price": i.price.ID,
			"product": i.price.Values["product"], "unit_amount": i.price.Values["unit_amount"],
			"description": nil, "metadata": map[string]string{},
		})})
	}
	invoice.Values = invoice.Values.With(table.Values{
		"status": "paid", "total": total, "paid": total, "remaining": int64(0), "paid_at": at, "lines": lines,
		"number": c.Text("invoice_prefix") + "-0001", "address": c.Values["address"], "email": c.Values["email"],
		"name": c.Values["name"], "phone": c.Values["phone"],
	})
	sub.Values = sub.Values.With(table.Values{"items": shown, "latest_invoice": invoice.ID})
	a.addEvent(sub, "customer.subscription.created", at, "subscription", nil)
	return sub
}

// addEvent adds an event about a record. The event contains the record as it is now.
func (a *API) addEvent(of *table.Row, sort string, at int64, shape string, key any) {
	a.add(events, of.Text("account"), at, table.Values{
		"type": sort, "version": apiVersion, "request": nil, "idempotency_key": key,
		"of":    table.Part{Template: a.shapes[shape], Values: of.Values},
		"of_id": of.ID, "of_type": shape, "of_kind": shape + "s", "created_at": table.Stamp(at),
	})
}
