// The shapes of GitHub and Stripe beside the types of their Go packages, by
// reflection: what a type has a field for is there, and arrives in the field.

package vendors

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v88/github"
	"github.com/stripe/stripe-go/v85"
)

// typed is one record and the package's type of it. lacks are the fields that
// records have only in special cases, or on other paths.
type typed struct {
	path  string
	row   []any // from the answer to the record
	into  any
	lacks string
}

func TestGitHubsShapeFillsTheTypesOfItsPackage(t *testing.T) {
	t.Parallel()
	v := &vendor{T: t, web: serveShape(t, "github"), header: githubHeader()}
	repo := "/repos/acme/tracker"
	_, pulls := v.ask("GET", repo+"/pulls?state=all", "")
	_, releases := v.ask("GET", repo+"/releases", "")
	_, commits := v.ask("GET", repo+"/commits", "")
	_, comments := v.ask("GET", repo+"/issues/comments", "")
	full := githubHeader()
	full.Set("Accept", "application/vnd.github.full+json")
	for _, one := range []typed{
		{repo + "/issues/" + text(pulls, 0, "number"), nil, &github.Issue{}, "repository text_matches type issue_field_values sub_issues_summary " +
			"issue_dependencies_summary pinned_comment parent_issue_url"},
		{repo + "/pulls/" + text(pulls, 0, "number"), nil, &github.PullRequest{}, "stack"},
		{repo, nil, &github.Repository{}, "code_of_conduct parent source template_repository custom_properties master_branch auto_init " +
			"license_template gitignore_template text_matches security_and_analysis role_name team_id"},
		{"/user", nil, &github.User{}, "suspended_at business_plus ldap_dn permissions role_name text_matches assignment inherited_from"},
		{repo + "/issues/comments/" + text(comments, 0, "id"), nil, &github.IssueComment{}, "pin minimized"},
		{repo + "/labels/bug", nil, &github.Label{}, ""},
		{repo + "/commits/" + text(commits, 0, "sha"), nil, &github.RepositoryCommit{}, ""},
		{repo + "/releases/" + text(releases, 0, "id"), nil, &github.RepositoryRelease{}, "discussion_category_name discussion_url " +
			"generate_release_notes make_latest mentions_count reactions"},
		{"/search/issues?q=is:pr", nil, &github.IssuesSearchResult{}, ""},
	} {
		_, whole := v.ask("GET", one.path, "")
		fills(t, one, whole)
	}
}

func TestStripesShapeFillsTheTypesOfItsPackage(t *testing.T) {
	t.Parallel()
	v := &vendor{T: t, web: serveShape(t, "stripe"), header: http.Header{"Authorization": {"Bearer sk_test_slowapitoken"}}}
	first := []any{"data", 0}
	for _, one := range []typed{
		{"/v1/customers", first, &stripe.Customer{}, "cash_balance deleted invoice_credit_balance sources subscriptions tax tax_ids " +
			"individual_name business_name"},
		{"/v1/charges", first, &stripe.Charge{}, "authorization_code destination dispute level3 presentment_details radar_options refunds source transfer"},
		{"/v1/payment_intents", first, &stripe.PaymentIntent{}, "hooks presentment_details source payment_details"},
		{"/v1/refunds", first, &stripe.Refund{}, "description failure_balance_transaction failure_reason instructions_email next_action " +
			"pending_reason presentment_details"},
		{"/v1/products", first, &stripe.Product{}, "deleted type provisioning"},
		{"/v1/prices", first, &stripe.Price{}, "currency_options deleted tiers"},
		{"/v1/subscriptions", first, &stripe.Subscription{}, "presentment_details plan quantity discount"},
		{"/v1/invoices", first, &stripe.Invoice{}, "confirmation_secret deleted payments threshold_reason"},
		{"/v1/events", first, &stripe.Event{}, "account context"},
		{"/v1/balance", nil, &stripe.Balance{}, "connect_reserved instant_available issuing"},
		{"/v2/core/events", first, &stripe.V2BaseEvent{}, "changes"},
	} {
		_, whole := v.ask("GET", one.path, "")
		for _, step := range one.row {
			switch step := step.(type) {
			case string:
				whole = whole.(map[string]any)[step]
			case int:
				whole = whole.([]any)[step]
			}
		}
		fills(t, one, whole)
	}
}

// fills reads a record into the type and looks at each of its fields.
func fills(t *testing.T, one typed, record any) {
	t.Helper()
	raw, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, one.into); err != nil {
		t.Errorf("%s: %v", one.path, err)
		return
	}
	have, _ := record.(map[string]any)
	lacks, seen := strings.Fields(one.lacks), 0
	value := reflect.ValueOf(one.into).Elem()
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		ours, there := have[name]
		switch {
		case there && slices.Contains(lacks, name):
			t.Errorf("%s: %s is there, take it out of what is lacking", one.path, name)
		case !there && !slices.Contains(lacks, name):
			t.Errorf("%s: the package has a field for %s, the record has none", one.path, name)
		case there && !isNothing(ours) && value.Field(i).IsZero():
			t.Errorf("%s: %s is %v, and the package reads nothing", one.path, name, ours)
		case there:
			seen++
		}
	}
	if seen < 3 {
		t.Errorf("%s: only %d of %v are fields", one.path, seen, slices.Sorted(maps.Keys(have)))
	}
}

// isNothing tells whether a value looks the same as none in a Go type.
func isNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return reflect.ValueOf(value).IsZero()
}
