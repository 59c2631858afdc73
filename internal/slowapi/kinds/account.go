// Accounts: the main account and its subaccounts.
package kinds

import (
	"cmp"
	"net/url"
	"slices"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Accounts are the main account, which has the index 0, and its subaccounts. As at Twilio, the record of an account
// contains its authentication token.
var Accounts = settingKind(world.Kind{
	Name: "accounts", Prefix: "AC", Tag: 'A', Shape: "account", Writes: world.Writes{Create: createAccount, Update: updateAccount},
	Filters: []world.Filter{world.TextFilter("FriendlyName", "FriendlyName"), world.TextFilter("Status", "Status")},
}, nil, func(w *world.World, _ *world.Sequence, i int64, v table.Values) {
	if v["auth_token"] = w.Token; i > 0 {
		d := fake.RngFor(w.Seed, world.TagSecrets, i)
		v["auth_token"] = string(d.Hex(nil, 16))
	}
})

func createAccount(_ *world.World, s *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	if s.Count() >= world.MaxAccounts {
		return nil, format.NewInvalid("This world has no room for more accounts")
	}
	return map[string]string{"FriendlyName": cmp.Or(form.Get("FriendlyName"), "SubAccount")}, nil
}

func updateAccount(_ *world.World, _ *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Answer) {
	fields := map[string]string{}
	if form.Has("FriendlyName") {
		fields["FriendlyName"] = form.Get("FriendlyName")
	}
	if form.Has("Status") {
		status := form.Get("Status")
		if !slices.Contains([]string{"active", "suspended", "closed"}, status) || i == 0 && status != "active" {
			return nil, nil, format.NewInvalid("Status is not valid: " + status)
		}
		fields["Status"] = status
	}
	return fields, nil, nil
}
