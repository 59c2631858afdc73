// Accounts: the main one and those below it.
package kinds

import (
	"net/url"
	"slices"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Accounts are the main account and those below it.
var Accounts = &world.Kind{
	Name: "accounts", Prefix: "AC", Tag: 'A',
	Blank: func() world.Row { return new(account) },
	Filters: []world.Filter{
		{Key: "FriendlyName", Read: world.TextFilter(func(r world.Row) string { return r.(*account).name })},
		{Key: "Status", Read: world.TextFilter(func(r world.Row) string { return r.(*account).status })},
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

// Append writes the account's row, which is its instance too. It really carries
// the secret, as Twilio's does.
func (a *account) Append(dst []byte, w *world.World) []byte {
	sid := w.AccountSID(int(a.i))
	base := format.Version + "/Accounts/" + sid
	updated := a.s.Created(a.i)
	if m := a.s.Marks[a.i]; m != nil {
		updated = max(updated, m.Touched)
	}

	o := format.Object{B: dst}
	o.Open()
	o.Text("auth_token", w.AccountToken(int(a.i)))
	o.Date("date_created", a.s.Created(a.i))
	o.Date("date_updated", updated)
	o.Text("friendly_name", a.name)
	o.Text("owner_account_sid", w.AccountSID(0))
	o.Text("sid", sid)
	o.Text("status", a.status)
	o.Name("subresource_uris")
	o.Open()
	for _, sub := range accountSubresources {
		o.Text(sub[0], base+"/"+sub[1]+".json")
	}
	o.Close()
	o.Text("type", "Full")
	o.Text("uri", base+".json")
	o.Close()
	return o.B
}

var accountSubresources = [][2]string{
	{"addresses", "Addresses"},
	{"applications", "Applications"},
	{"authorized_connect_apps", "AuthorizedConnectApps"},
	{"available_phone_numbers", "AvailablePhoneNumbers"},
	{"balance", "Balance"},
	{"calls", "Calls"},
	{"conferences", "Conferences"},
	{"connect_apps", "ConnectApps"},
	{"incoming_phone_numbers", "IncomingPhoneNumbers"},
	{"keys", "Keys"},
	{"messages", "Messages"},
	{"notifications", "Notifications"},
	{"outgoing_caller_ids", "OutgoingCallerIds"},
	{"queues", "Queues"},
	{"recordings", "Recordings"},
	{"short_codes", "SMS/ShortCodes"},
	{"signing_keys", "SigningKeys"},
	{"sip", "SIP"},
	{"transcriptions", "Transcriptions"},
	{"usage", "Usage"},
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
