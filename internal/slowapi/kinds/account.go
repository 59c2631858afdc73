// Accounts: the main one and those below it.
package kinds

import (
	"net/url"
	"slices"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Accounts are the main account and those below it.
var Accounts = &world.Kind{
	Name: "accounts", Prefix: "AC", Tag: 'A',
	Blank: func() world.Row { return new(account) }, Shape: "account",
	Filters: []world.Filter{
		world.TextFilter("FriendlyName", func(r *account) string { return r.name }),
		world.TextFilter("Status", func(r *account) string { return r.status }),
	},
	Create: createAccount, Update: updateAccount,
}

// account is one account. Index 0 is the main one and owns the others.
type account struct {
	s            *world.Sequence
	i            int64
	name, status string
}

// Load reads the account with an index.
func (a *account) Load(_ *world.World, s *world.Sequence, i int64) {
	*a = account{s: s, i: i, name: "Slow & Steady Telephony", status: "active"}
	if i > 0 {
		a.name = "Field office"
	}
	if name, set := s.Form(i, "FriendlyName"); set {
		a.name = name
	}
	if status, set := s.Form(i, "Status"); set {
		a.status = status
	}
}

// Values are the account as its template shows it. It really carries the secret,
// as Twilio's does.
func (a *account) Values(w *world.World) table.Values {
	return table.Values{
		"auth_token": w.AccountToken(int(a.i)), "created": a.s.Created(a.i), "updated": a.s.Updated(a.i), "name": a.name, "status": a.status,
	}
}

func createAccount(_ *world.World, s *world.Sequence, form url.Values) (map[string]string, *format.Refusal) {
	if s.Count() >= world.MaxAccounts {
		return nil, format.Invalid("This world has no room for more accounts")
	}
	fields := map[string]string{"FriendlyName": form.Get("FriendlyName")}
	if fields["FriendlyName"] == "" {
		fields["FriendlyName"] = "SubAccount"
	}
	return fields, nil
}

func updateAccount(_ *world.World, _ *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Refusal) {
	fields := map[string]string{}
	if form.Has("FriendlyName") {
		fields["FriendlyName"] = form.Get("FriendlyName")
	}
	if form.Has("Status") {
		status := form.Get("Status")
		if !slices.Contains([]string{"active", "suspended", "closed"}, status) || i == 0 && status != "active" {
			return nil, nil, format.Invalid("Status is not valid: " + status)
		}
		fields["Status"] = status
	}
	return fields, nil, nil
}
