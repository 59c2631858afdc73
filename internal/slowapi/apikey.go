// Keys and signing keys: the answer to their creation, and no other, tells the secret.
package slowapi

import "slices"

var (
	apiKeys     = cards("keys", "SK", tagKeys, 3, &keyLayout)
	signingKeys = cards("signing_keys", "SK", tagSigningKeys, 2, &keyLayout)
)

var keyLayout = layout{
	columns: keyColumns,
	fresh:   slices.Concat(keyColumns, []column{{"secret", secretColumn}}),
	may:     map[string][]string{"FriendlyName": nil},
	first: func(_ *world, _ *sequence, i int64) map[string]string {
		return map[string]string{"FriendlyName": [...]string{"reports", "Nightly <backup>", ""}[i]}
	},
}

var keyColumns = []column{
	{"date_created", createdColumn},
	{"date_updated", updatedColumn},
	{"friendly_name", text("FriendlyName")},
	{"sid", sidColumn},
}

// secretColumn writes a real secret, 32 letters and digits, as Twilio does; it
// opens nothing here.
func secretColumn(o *object, name string, c *card, _ *world) {
	d := drawFor(c.s.seed, tagSecrets<<8|c.s.kind.tag, c.i)
	o.text(name, string(d.hex(nil, 16)))
}

var keyRoutes = []route{
	{pattern: "Accounts/*/Keys", kind: apiKeys},
	{pattern: "Accounts/*/Keys/*", kind: apiKeys, instance: true},
	{pattern: "Accounts/*/SigningKeys", kind: signingKeys},
	{pattern: "Accounts/*/SigningKeys/*", kind: signingKeys, instance: true},
}
