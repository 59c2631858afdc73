// Arrivals: walks of GitHub's and Stripe's packages while records come. What was
// there when a walk began is in it, and nothing between two records is left out.

package e2e

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-github/v88/github"
	"github.com/stripe/stripe-go/v85"
)

// firstAnew wants the first page of each list from upstream: the pages behind it,
// held from before, are then those of a list that has moved on.
type firstAnew struct{ http.RoundTripper }

func (f firstAnew) RoundTrip(r *http.Request) (*http.Response, error) {
	if r = r.Clone(r.Context()); r.URL.Query().Get("page") == "" {
		r.Header.Set("Cache-Control", "no-cache")
	}
	return f.RoundTripper.RoundTrip(r)
}

func TestAGitHubWalkDuringArrivalsLosesNothing(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--shape", "github", "--records", "300", "--latency", "0s").URL("slowapi")
	// A program may want the same page from upstream once a second: each walk is of another one.
	programs := []string{"first", "second", "third", "fourth"}
	base := startGitHub(t, up, programs...).URL("github") + "/"
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	newest := 0
	for walk, name := range programs {
		c, err := github.NewClient(github.WithTransport(firstAnew{plain}), github.WithAuthToken(name+programSecret), github.WithURLs(&base, nil))
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := everyPage(func(o github.ListOptions) ([]int, *github.Response, error) {
			rows, r, err := c.Issues.ListByRepo(t.Context(), "acme", "tracker", &github.IssueListByRepoOptions{State: "all", ListOptions: o})
			control(t, up, "/-/advance", `{"issues":4}`)
			var found []int
			for _, row := range rows {
				found = append(found, row.GetNumber())
			}
			return found, r, err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers) // a record that moved to the next page is there twice, as it is directly
		if len(numbers) < 150 || numbers[0] != 1 || numbers[len(numbers)-1] != len(numbers) {
			t.Errorf("walk %d: %d issues from %d to %d", walk, len(numbers), numbers[0], numbers[len(numbers)-1])
		}
		if last := numbers[len(numbers)-1]; last <= newest {
			t.Errorf("walk %d: the newest is %d, and was %d: the first page is not a new one", walk, last, newest)
		} else {
			newest = last
		}
	}
}

func TestAStripeWalkDuringArrivalsLosesNothing(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--shape", "stripe", "--records", "60", "--latency", "0s").URL("slowapi")
	walk := func(address, key string, between func()) (ids []string) {
		t.Helper()
		c := stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			URL: &address, LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}})))
		for row, err := range c.V1Customers.List(t.Context(), &stripe.CustomerListParams{ListParams: stripe.ListParams{Limit: stripe.Int64(7)}}).All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if ids = append(ids, row.ID); len(ids)%7 == 0 {
				between()
			}
		}
		return ids
	}
	through := stripeHouse(t, up, stripe.APIVersion)
	for round := range 4 {
		there := walk(up, stripeKey, func() {})
		if round > 0 { // what is held from an earlier round may be as old as that
			there = there[len(there)-60:]
		}
		found := walk(through, stripeToken, func() { control(t, up, "/-/advance", `{"customers":2}`) })
		at := slices.Index(found, there[0])
		if at < 0 || !slices.Equal(found[at:], there) {
			t.Errorf("round %d: %d customers, of %d that were there", round, len(found), len(there))
		}
	}
}
