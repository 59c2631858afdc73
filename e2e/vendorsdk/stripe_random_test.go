// Stripe at random: the same sequence of lists, records and changes, with and without an
// account, a version and what is to be expanded, through Understudy and directly, by each SDK.

package vendorsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// stripeOp is one call of an SDK: list, retrieve or update.
type stripeOp struct {
	Do      string   `json:"do"`
	Kind    string   `json:"kind"`
	ID      string   `json:"id"`
	Limit   int64    `json:"limit"`
	Expand  []string `json:"expand"`
	Account string   `json:"account"`
	Version string   `json:"version"`
	Name    string   `json:"name"`
}

// stripeOps are calls, and the address where each is done once more.
type stripeOps struct {
	Direct string     `json:"direct"`
	Ops    []stripeOp `json:"ops"`
}

// expands are what a record of a kind can show whole.
var expands = map[string][]string{"customers": nil, "charges": {"customer", "payment_intent"}, "payment_intents": {"customer", "latest_charge"}}

// randomStripeOps draws calls over few records, so that they meet.
func randomStripeOps(rng *rand.Rand, n int, ids map[string][]string) (ops []stripeOp) {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	for i := range n {
		op := stripeOp{Kind: one("customers", "charges", "payment_intents"), Do: one("list", "retrieve", "retrieve"), Limit: 3 + 2*rng.Int64N(2),
			Account: one("", "", stripeConnected), Version: one("", "", "2022-08-01", "2020-08-27")}
		held := ids[op.Account+op.Kind]
		if rng.IntN(12) == 0 {
			held = ids[op.Kind] // it may be another account's
		}
		op.ID = held[rng.IntN(min(5, len(held)))]
		if op.Kind == "customers" && rng.IntN(4) == 0 {
			op.Do, op.Name = "update", fmt.Sprint("Name ", i)
		}
		if all := expands[op.Kind]; len(all) > 0 && op.Do != "update" && rng.IntN(3) == 0 {
			op.Expand = []string{one(all...)}
			if op.Do == "list" {
				op.Expand[0] = "data." + op.Expand[0]
			}
		}
		ops = append(ops, op)
	}
	return ops
}

const stripeConnected = "acct_1SlowapiConnect1"

func TestStripeSDKsAtRandom(t *testing.T) {
	t.Parallel()
	seed, n := sample.Seed(t), sample.Count(150, 2000)
	for sdk, call := range stripeSDKs {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			api := rig.StartAPI(t, "--shape", "stripe", "--latency", "0s", "--records", "60").URL("slowapi")
			version, err := call(t.Context(), api, stripeKey, "version")
			if err != nil {
				t.Fatal(err)
			}
			ids, paid := map[string][]string{}, map[string]string{} // who has paid, by payment
			for _, account := range []string{"", stripeConnected} {
				for kind := range expands {
					headers := []string{"Authorization", "Bearer " + stripeKey}
					if account != "" {
						headers = append(headers, "Stripe-Account", account)
					}
					var list struct {
						Data []struct{ ID, Customer string }
					}
					r, err := rig.Ask(http.MethodGet, "", api+"/v1/"+kind+"?limit=10", "", headers...)
					checktest.MustNoError(t, err, "%s of %q", kind, account)
					checktest.MustTrue(t, json.Unmarshal(r.Body, &list) == nil,
						"%s of %q: json.Unmarshal(r.Body, &list) is %v", kind, account,
						json.Unmarshal(r.Body, &list))
					checktest.MustTrue(t, len(list.Data) != 0, "%s of %q: len(list.Data) is 0", kind, account)
					for _, row := range list.Data {
						ids[account+kind] = append(ids[account+kind], row.ID)
						paid[row.ID] = row.Customer
					}
				}
			}
			ops := stripeOps{Direct: api, Ops: randomStripeOps(rand.New(rand.NewPCG(seed, 4)), n, ids)}
			// What shows a record inside another is old when that is changed.
			inside := stripeOp{Do: "retrieve", Kind: "payment_intents", ID: ids["payment_intents"][0], Expand: []string{"customer"}}
			ops.Ops[0], ops.Ops[1], ops.Ops[2] = inside, stripeOp{Do: "update", Kind: "customers", ID: paid[inside.ID], Name: "Another"}, inside
			does, err := json.Marshal(ops)
			if err != nil {
				t.Fatal(err)
			}
			out, err := call(t.Context(), stripeHouse(t, api, strings.TrimSpace(string(version))), rig.StripeToken, string(does))
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(string(out)))
			if len(lines) != 2*n {
				t.Fatalf("%d lines of %d calls: %.300s", len(lines), n, out)
			}
			wrong, good := 0, 0
			for i, op := range ops.Ops {
				through, direct := lines[2*i], lines[2*i+1]
				if strings.HasPrefix(direct, "[") {
					good++
				}
				if through != direct {
					if wrong++; wrong < 5 {
						t.Errorf("call %d, %+v: %s", i, op, rig.FirstDifference([]byte(direct), []byte(through)))
					}
				}
			}
			if good < n*3/4 {
				t.Errorf("only %d of %d calls were answered", good, n)
			}
		})
	}
}

// stripeGoOps does calls with stripe-go, each at both addresses, and writes an answer a line.
func stripeGoOps(ctx context.Context, through, direct *stripe.Client, ops []stripeOp) ([]byte, error) {
	var out []byte
	for _, op := range ops {
		for _, c := range []*stripe.Client{through, direct} {
			rows, err := op.do(ctx, c)
			var answer any = rows
			if e, ok := err.(*stripe.Error); ok {
				answer = map[string]any{"status": e.HTTPStatusCode, "message": e.Msg}
			} else if err != nil {
				return nil, err
			}
			line, err := json.Marshal(answer)
			if err != nil {
				return nil, err
			}
			out = append(append(out, line...), '\n')
		}
	}
	return out, nil
}

func (op *stripeOp) do(ctx context.Context, c *stripe.Client) (rows []any, err error) {
	p := stripe.Params{Headers: http.Header{}}
	l := stripe.ListParams{Limit: &op.Limit, Single: true}
	if op.Account != "" {
		p.StripeAccount, l.StripeAccount = &op.Account, &op.Account
	}
	if op.Version != "" {
		p.Headers.Set("Stripe-Version", op.Version)
	}
	var expand []*string
	for _, path := range op.Expand {
		expand = append(expand, &path)
	}
	if op.Do == "list" {
		for row, err := range map[string]func() iter.Seq2[any, error]{
			"customers": func() iter.Seq2[any, error] {
				return anyOf(c.V1Customers.List(ctx, &stripe.CustomerListParams{ListParams: l, Expand: expand}).All(ctx))
			},
			"charges": func() iter.Seq2[any, error] {
				return anyOf(c.V1Charges.List(ctx, &stripe.ChargeListParams{ListParams: l, Expand: expand}).All(ctx))
			},
			"payment_intents": func() iter.Seq2[any, error] {
				return anyOf(c.V1PaymentIntents.List(ctx, &stripe.PaymentIntentListParams{ListParams: l, Expand: expand}).All(ctx))
			},
		}[op.Kind]() {
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		return rows, nil
	}
	var one any
	switch op.Do + " " + op.Kind {
	case "update customers":
		one, err = c.V1Customers.Update(ctx, op.ID, &stripe.CustomerUpdateParams{Params: p, Expand: expand, Name: &op.Name})
	case "retrieve customers":
		one, err = c.V1Customers.Retrieve(ctx, op.ID, &stripe.CustomerRetrieveParams{Params: p, Expand: expand})
	case "retrieve charges":
		one, err = c.V1Charges.Retrieve(ctx, op.ID, &stripe.ChargeRetrieveParams{Params: p, Expand: expand})
	case "retrieve payment_intents":
		one, err = c.V1PaymentIntents.Retrieve(ctx, op.ID, &stripe.PaymentIntentRetrieveParams{Params: p, Expand: expand})
	}
	return []any{one}, err
}
