// Stripe walks: npm stripe, PyPI stripe and stripe-go read every list, directly and through
// Understudy, and get the same.

package vendorsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const stripeKey = "sk_test_slowapitoken"

// stripeWalk is what an SDK gives: for each list its records.
type stripeWalk map[string][]json.RawMessage

// stripeSDKs walk every list ("walk") or one ("customers"), make a customer ("create"), say which version of the API they
// send, or do the calls of stripeOps.
var stripeSDKs = map[string]func(ctx context.Context, address, key, does string) ([]byte, error){
	"npm stripe":  vendorScript("../sdks/node", "node", "stripe.mjs"),
	"PyPI stripe": vendorScript("../sdks/python", filepath.Join(".venv", "bin", "python"), "stripe_walk.py"),
	"stripe-go":   stripeGo,
}

// vendorScript runs a script in another language with an address, a secret and what it does; calls may
// be more than an argument may have, so that the script reads these.
func vendorScript(dir, program, script string) func(ctx context.Context, address, key, does string) ([]byte, error) {
	return func(ctx context.Context, address, key, does string) ([]byte, error) {
		calls := strings.NewReader("")
		if strings.HasPrefix(does, "{") {
			calls, does = strings.NewReader(does), "-"
		}
		cmd := exec.CommandContext(ctx, program, script, address, key, does)
		cmd.Stdin = calls
		cmd.Dir, cmd.Env = dir, rig.WithoutProxies(os.Environ())
		out, err := cmd.Output()
		var exit *exec.ExitError
		if ok := err != nil && asExit(err, &exit); ok {
			err = fmt.Errorf("%w: %.2000s", err, exit.Stderr)
		}
		return out, err
	}
}

func asExit(err error, exit **exec.ExitError) (ok bool) {
	*exit, ok = err.(*exec.ExitError)
	return ok
}

func stripeGo(ctx context.Context, address, key, does string) ([]byte, error) {
	if does == "version" {
		return []byte(stripe.APIVersion), nil
	}
	quiet := &stripe.LeveledLogger{Level: stripe.LevelNull}
	client := stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{URL: &address, LeveledLogger: quiet})))
	if strings.HasPrefix(does, "{") {
		var of stripeOps
		if err := json.Unmarshal([]byte(does), &of); err != nil {
			return nil, err
		}
		direct := stripe.NewClient(stripeKey, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{URL: &of.Direct, LeveledLogger: quiet})))
		return stripeGoOps(ctx, client, direct, of.Ops)
	}
	if does == "create" {
		made, err := client.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Name: stripe.String("Lost"),
			Metadata: map[string]string{"of": "go", "deep": "a=b&c"}})
		if err == nil {
			made, err = client.V1Customers.Retrieve(ctx, made.ID, nil)
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"made": []any{made}})
	}
	out, err := map[string][]any{}, error(nil)
	page := stripe.ListParams{Limit: stripe.Int64(7)}
	for name, list := range map[string]func() iter.Seq2[any, error]{
		"customers": func() iter.Seq2[any, error] {
			return anyOf(client.V1Customers.List(ctx, &stripe.CustomerListParams{ListParams: page}).All(ctx))
		},
		"charges": func() iter.Seq2[any, error] {
			return anyOf(client.V1Charges.List(ctx, &stripe.ChargeListParams{ListParams: page}).All(ctx))
		},
		"payment_intents": func() iter.Seq2[any, error] {
			return anyOf(client.V1PaymentIntents.List(ctx, &stripe.PaymentIntentListParams{ListParams: page}).All(ctx))
		},
		"refunds": func() iter.Seq2[any, error] {
			return anyOf(client.V1Refunds.List(ctx, &stripe.RefundListParams{ListParams: page}).All(ctx))
		},
		"products": func() iter.Seq2[any, error] {
			return anyOf(client.V1Products.List(ctx, &stripe.ProductListParams{ListParams: page}).All(ctx))
		},
		"prices": func() iter.Seq2[any, error] {
			return anyOf(client.V1Prices.List(ctx, &stripe.PriceListParams{ListParams: page}).All(ctx))
		},
		"subscriptions": func() iter.Seq2[any, error] {
			return anyOf(client.V1Subscriptions.List(ctx, &stripe.SubscriptionListParams{ListParams: page}).All(ctx))
		},
		"invoices": func() iter.Seq2[any, error] {
			return anyOf(client.V1Invoices.List(ctx, &stripe.InvoiceListParams{ListParams: page}).All(ctx))
		},
		"events": func() iter.Seq2[any, error] {
			return anyOf(client.V1Events.List(ctx, &stripe.EventListParams{ListParams: page}).All(ctx))
		},
	} {
		if does != "walk" && does != "outage" && does != name {
			continue
		}
		for row, listErr := range list() {
			if listErr != nil {
				err = fmt.Errorf("%s: %w", name, listErr)
				break
			}
			out[name] = append(out[name], row)
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func anyOf[T any](of stripe.Seq2[T, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for row, err := range of {
			if !yield(row, err) {
				return
			}
		}
	}
}

// stripeHouse is Understudy in front of a Stripe, in the version that an SDK sends. It knows a
// program, and others by these names; the secret of each of those ends with its name.
func stripeHouse(t *testing.T, up, version string, others ...string) string {
	t.Helper()
	dir, more := t.TempDir(), ""
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(rig.StripeToken+name), 0o600); err != nil {
			t.Fatal(err)
		}
		more += fmt.Sprintf("  - {name: %s, source: stripe, secret: \"file:%s\", role: all}\n", name, name)
	}
	for name, text := range map[string]string{"stripe.token": stripeKey, "till.secret": rig.StripeToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  stripe: {spec: stripe, user: acct_1, secret: "file:stripe.token", upstream: "` + up + `", listen: "127.0.0.1:0", rate: 500, headers: {send: {Stripe-Version: "` + version + `"}}}
credentials:
  - {name: till, source: stripe, secret: "file:till.secret", role: all, allow: ["POST /v1/*", "POST /v1/*/*", "DELETE /v1/*/*"]}
` + more} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return rig.Start(t, dir, "serve").URL("stripe")
}

func TestEveryStripePackageWalksEveryList(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--shape", "stripe", "--latency", "0s", "--records", "60")
	for name, sdk := range stripeSDKs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			var down atomic.Bool
			up := rig.Between(t, api.URL("slowapi"), func(*http.Request) bool { asked.Add(1); return !down.Load() })
			version, err := sdk(t.Context(), up, stripeKey, "version")
			if err != nil {
				t.Fatal(err)
			}
			drop := stripeHouse(t, up, strings.TrimSpace(string(version)))
			walk := func(address, key, does string) stripeWalk {
				t.Helper()
				text, err := sdk(t.Context(), address, key, does)
				var out stripeWalk
				if err != nil || json.Unmarshal(text, &out) != nil {
					t.Fatalf("%v: %.500s", err, text)
				}
				return out
			}
			want := walk(up, stripeKey, "walk")
			checktest.MustTrue(t, len(want) >= 9, "len(want) is %v, want >= 9", len(want))
			checktest.MustTrue(t, len(want["customers"]) >= 60, `len(want["customers"]) is %v, want >= 60`,
				len(want["customers"]))
			checktest.MustTrue(t, len(want["events"]) != 0, `len(want["events"]) is 0`)
			same(t, "cold", walk(drop, rig.StripeToken, "walk"), want)
			before := asked.Load()
			same(t, "warm", walk(drop, rig.StripeToken, "walk"), want)
			if again := asked.Load() - before; again > 2 { // what is expanded is not kept
				t.Errorf("%d requests upstream for a warm walk", again)
			}
			down.Store(true)
			delete(want, "expanded") // it is not kept
			same(t, "in an outage", walk(drop, rig.StripeToken, "outage"), want)
		})
	}
}

func same(t *testing.T, when string, got, want stripeWalk) {
	t.Helper()
	for name, rows := range want {
		if !slices.EqualFunc(got[name], rows, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s: %d %s, want %d: %.300s\nwant %.300s", when, len(got[name]), name, len(rows), got[name], rows)
		}
	}
}

// The first answer to a write is lost; the SDK sends it again with the same key, and one
// customer is made (D1).
func TestStripeMakesOneCustomer(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--shape", "stripe", "--latency", "0s", "--records", "5")
	to, err := url.Parse(api.URL("slowapi"))
	if err != nil {
		t.Fatal(err)
	}
	for name, sdk := range stripeSDKs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && posts.Add(1) == 1 {
					forward.ServeHTTP(httptest.NewRecorder(), r) // it is done
					panic(http.ErrAbortHandler)
				}
				forward.ServeHTTP(w, r)
			}))
			defer up.Close()
			drop := stripeHouse(t, up.URL, "2026-10-28.endive")
			text, err := sdk(t.Context(), drop, rig.StripeToken, "create")
			var out struct {
				Made []struct {
					ID, Name string
					Metadata map[string]string
				}
			}
			checktest.MustNoError(t, err, "%v; text %s", err, text)
			checktest.MustTrue(t, json.Unmarshal(text, &out) == nil, "%v: json.Unmarshal(text, &out) is %v", err,
				json.Unmarshal(text, &out))
			checktest.MustEqual(t, len(out.Made), 1, "%v: len(out.Made); text %s", err, text)
			checktest.MustEqual(t, out.Made[0].Metadata["deep"], "a=b&c",
				`%v: out.Made[0].Metadata["deep"]; text %s`, err, text)
			made := 0
			r, err := rig.Ask(http.MethodGet, "", api.URL("slowapi")+"/v1/customers?limit=100", "", "Authorization", "Bearer "+stripeKey)
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Data []struct{ Metadata map[string]string }
			}
			if err := json.Unmarshal(r.Body, &list); err != nil {
				t.Fatal(err)
			}
			for _, c := range list.Data {
				if c.Metadata["of"] == out.Made[0].Metadata["of"] {
					made++
				}
			}
			if made != 1 || posts.Load() != 2 {
				t.Errorf("%d customers were made by %d requests", made, posts.Load())
			}
		})
	}
}
