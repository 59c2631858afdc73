// Fields: what is hidden as a secret, and what is not.

package infer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/spec"
)

// TestAFieldOfWritesIsNoSecret draws a field that is written alone in one kind and shown in another:
// it stays visible in both.
func TestAFieldOfWritesIsNoSecret(t *testing.T) {
	draft := drafted(t, twoKinds(`"ip_address":{"type":"string","writeOnly":true}`, `"ip_address":{"type":"string"}`))
	for _, k := range drawnSpec(t, draft).Kinds {
		if f := k.Field("ip_address"); f == nil || f.Class == spec.ClassSecret {
			t.Errorf("%s: ip_address is %+v", k.Name, f)
		}
	}
	if !hasDoubt(draft, "kind domains, field ip_address", "not hidden") {
		t.Errorf("no doubt names the field: %q", draft.Unsure)
	}
}

// TestAFormatMakesASecretOfItsKindAlone draws format: password of a name that another kind has for something else, at any
// depth: it is hidden in its kind, and the other kind declares the name as no secret. So it does where its list has its rows
// under the name of a secret.
func TestAFormatMakesASecretOfItsKindAlone(t *testing.T) {
	const entry, secret, plain, none = `"entry":{"type":"string","format":"password"}`, "secret", "plain", "none"
	inside := func(field string) string { return `"inside":{"type":"object","properties":{` + field + `}}` }
	for _, one := range []struct{ domain, droplet, name, inDomains, inDroplets string }{
		{entry, `"entry":{"type":"string"}`, "entry", secret, plain},
		{entry, inside(`"entry":{"type":"integer"}`), "entry", secret, plain},
		{inside(entry), `"entry":{"type":"string"}`, "inside.entry", secret, none},
		{inside(entry), `"more":{"type":"object","properties":{` + inside(`"entry":{"type":"string"}`) + `}}`, "inside.entry", secret, plain},
		{entry, `"other":{"type":"string"}`, "entry", secret, none},
		{entry, entry, "entry", secret, secret},
		{`"password":{"type":"string","format":"password"}`, inside(`"password":{"type":"boolean"}`), "password", secret, none},
		{`"password":{"type":"string","format":"password"}`, `"password":{"type":"string"}`, "password", secret, secret},
		{`"secret":{"type":"string","enum":["shown","hidden"]}`, `"other":{"type":"string"}`, "secret", plain, none},
		{`"tokens":{"type":"array","items":{"type":"string"}}`, `"other":{"type":"string"}`, "tokens", secret, none},
	} {
		sp := drawnSpec(t, drafted(t, twoKinds(one.domain, one.droplet)))
		for kind, want := range map[string]string{"domains": one.inDomains, "droplets": one.inDroplets} {
			got := none
			if f := sp.Kind(kind).Field(one.name); f != nil && f.Class == spec.ClassSecret {
				got = secret
			} else if f != nil {
				got = plain
			}
			if got != want {
				t.Errorf("%s beside %s: %s is %s in %s, want %s", one.domain, one.droplet, one.name, got, kind, want)
			}
		}
	}
	draft := drafted(t, twoKinds(entry+","+inside(`"entry":{"type":"integer"}`), `"other":{}`))
	if !hasDoubt(draft, "field inside.entry", "it is hidden") {
		t.Errorf("no doubt says that the other field is hidden: %q", draft.Unsure)
	}
	document := strings.Replace(twoKinds(`"tokens":{"type":"array","items":{"type":"string"}}`, `"other":{}`), `"paths":{`, `"paths":{
		"/tokens":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{"tokens":
			{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}}}}}}}}},`, 1)
	if f := drawnSpec(t, drafted(t, document)).Kind("tokens").Field("tokens"); f == nil || f.Class != "" {
		t.Errorf("a list under the name of a secret declares %+v, want a field that is none", f)
	}
}

// TestAnIDIsShownWhereAnotherKindHidesItsName draws a list whose id has the name of a credential, beside records of another
// kind that hide the name where the list has it: below the key of its rows.
func TestAnIDIsShownWhereAnotherKindHidesItsName(t *testing.T) {
	rows := func(fields string) string {
		return `{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{
			"keys":{"type":"array","items":{"type":"object","properties":{` + fields + `}}}}}}}}}}}`
	}
	const key = `"access_key":{"type":"string"},"name":{"type":"string"}`
	one := func(fields string) string {
		return `{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{
			"keys":{"type":"object","properties":{` + fields + `}}}}}}}}}}`
	}
	document := `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{"/spaces/keys":` + rows(key) +
		`,"/spaces/keys/{access_key}":` + one(key) + `,"/agents/{id}":` + one(key) + `}}`
	sp := drawnSpec(t, drafted(t, document))
	for kind, secret := range map[string]bool{"keys": false, "agent": true} {
		k := sp.Kind(kind)
		if k == nil {
			t.Fatalf("no kind %s is drawn:\n%s", kind, drafted(t, document).YAML)
		}
		if f := k.Field("keys.access_key"); f == nil || (f.Class == spec.ClassSecret) != secret {
			t.Errorf("%s: keys.access_key is %+v, want a secret: %v", kind, f, secret)
		}
	}
	{
		f := sp.Kind("keys").Field("access_key")
		checktest.MustTrue(t, f != nil, "the id of a key is: f is nil")
		checktest.Equal(t, f.Class, "", "the id of a key is: f.Class")
		checktest.True(t, slices.Equal(sp.Kind("keys").ID, []string{"access_key"}),
			`the id of a key is: slices.Equal(sp.Kind("keys").ID, []string{"access_key"}) is false`)
	}
}

// twoKinds is a document with the lists of domains and droplets, which have a field each.
func twoKinds(domain, droplet string) string {
	list := func(name, field string) string {
		return `"/` + name + `":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"array","items":
			{"type":"object","properties":{"id":{"type":"string"},` + field + `}}}}}}}}}`
	}
	return `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{` + list("domains", domain) + `,` +
		list("droplets", droplet) + `}}`
}

// TestANameThatTellsOfASecretIsNone draws fields with a word such as password: those that hold it, and those that
// say when it changed, how it is called or where it is.
func TestANameThatTellsOfASecretIsNone(t *testing.T) {
	for name, secret := range map[string]bool{
		"password": true, "adminPassword": true, "client_secret": true, "password_hash": true, "secret_access_key": true, "secretKey": true,
		"secretString": true, "PasswordData": true, "password_confirmation": true,
		"passwordChanged": false, "lastPasswordVerification": false, "secretName": false, "password_policy": false, "forgotPasswordLabel": false,
	} {
		draft := drafted(t, twoKinds(`"`+name+`":{"type":"string"}`, `"other":{"type":"string"}`))
		if f := drawnSpec(t, draft).Kind("domains").Field(name); f == nil || (f.Class == spec.ClassSecret) != secret {
			t.Errorf("%s: %+v, want a secret: %v", name, f, secret)
		}
	}
}

// TestNamesOfCredentialsAreSecrets draws fields with the names that APIs give to keys, tokens and codes, in several
// spellings, and those that name a key or say where a page stands.
func TestNamesOfCredentialsAreSecrets(t *testing.T) {
	for name, secret := range map[string]bool{
		"ssh_private_key": true, "certPrivateKey": true, "private_key_pem": true, "encryption_key": true, "SigningKey": true, "hmac_key": true,
		"auth_key": true, "x_api_key": true, "X-Api-Key": true, "APIKey": true, "api_keys": true, "access_key": true, "accessKeys": true,
		"oauth_access_token": true, "personalAccessToken": true, "deploy_token": true, "id_token": true, "IDToken": true, "tokens": true,
		"scim_oauth_access_token": true, "api_token_2": true, "jwt": true, "session_jwt": true, "pwd": true, "db_pwd": true,
		"passcode": true, "recovery_codes": true, "backupCode": true, "otp_seed": true, "totpSeed": true, "connection_string": true,
		"primaryConnectionStrings": true, "client_secrets": true, "passwords": true,
		"page_token": false, "next_page_token": false, "nextPageToken": false, "nextToken": false, "next_sync_token": false,
		"continuationTokens": false, "cancellation_token": false, "token_type": false, "token_expires_at": false, "tokenName": false,
		"access_token_expires_at": false, "key_id": false, "access_key_id": false, "public_key": false, "public_api_key": false,
		"primary_key": false, "sort_key": false, "foreign_key": false, "api_key_name": false, "passcode_length": false, "jwt_issuer": false,
		"recovery_code_count": false, "monkey": false, "keys": false, "input_tokens": false, "total_tokens": false, "maxOutputTokens": false,
		"stop_token": false, "output_token": true,
	} {
		for typ, hidden := range map[string]bool{
			`"string"`: secret, `"array","items":{"type":"string"}`: secret, `"integer"`: false, `"boolean"`: false,
			`"array","items":{"type":"integer"}`: false,
		} {
			f := drawnSpec(t, drafted(t, twoKinds(`"`+name+`":{"type":`+typ+`}`, `"other":{"type":"string"}`))).Kind("domains").Field(name)
			if f == nil || (f.Class == spec.ClassSecret) != hidden {
				t.Errorf("%s of type %s: %+v, want a secret: %v", name, typ, f, hidden)
			}
		}
	}
}

// TestASecretInAnyVariantIsHidden draws objects whose secrets stand in a variant that is not the first: beside others,
// in objects that all variants have, in elements, in values of maps, and where only the discriminator names it.
func TestASecretInAnyVariantIsHidden(t *testing.T) {
	const hidden = `{"type":"object","properties":{"kind":{"type":"string"},"apiToken":{"type":"string"}}}`
	other := `{"type":"object","properties":{"kind":{"type":"integer"}}}`
	either := func(word, first, second string) string { return `{"` + word + `":[` + first + `,` + second + `]}` }
	inside := func(s string) string { return `{"type":"object","properties":{"config":` + s + `}}` }
	for row, name := range map[string]string{
		either("oneOf", other, hidden):                                                                         "apiToken",
		either("anyOf", other, `{"allOf":[`+other+`,`+hidden+`]}`):                                             "apiToken",
		`{"allOf":[` + other + `,` + either("oneOf", `{"type":"null"}`, either("oneOf", other, hidden)) + `]}`: "apiToken",
		either("oneOf", inside(other), inside(hidden)):                                                         "config.apiToken",
		inside(either("oneOf", `{"type":"string"}`, hidden)):                                                   "config.apiToken",
		inside(`{"type":"array","items":` + either("anyOf", other, hidden) + `}`):                              "config.apiToken",
		inside(either("oneOf", other, `{"type":"array","items":`+hidden+`}`)):                                  "config.apiToken",
		inside(`{"type":"object","additionalProperties":` + hidden + `}`):                                      "apiToken",
		inside(`{"type":"object","patternProperties":{"^x":` + hidden + `}}`):                                  "apiToken",
		inside(either("oneOf", `{"type":"object","properties":{"apiToken":{"type":"integer"}}}`, hidden)):      "config.apiToken",
		`{"discriminator":{"mapping":{"a":"#/components/schemas/Hidden"}}}`:                                    "apiToken",
	} {
		row := `{"allOf":[{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}}},` + row + `]}`
		kind := drawnSpec(t, drafted(t, listing(row, `"Hidden":`+hidden))).Kinds[0]
		if f := kind.Field(name); f == nil || f.Class != spec.ClassSecret {
			t.Errorf("%s: %s is %+v", row, name, f)
		}
	}
}

// TestASiblingHasFieldsOfItsOwn draws a kind whose schema is one that the discriminator of its base names: the fields
// of what is made of it are its own, those of the others beside it are not.
func TestASiblingHasFieldsOfItsOwn(t *testing.T) {
	made := func(of, field string) string {
		return `{"allOf":[{"$ref":"#/components/schemas/` + of + `"},{"type":"object","properties":{"` + field + `":{"type":"string"}}}]}`
	}
	schemas := `"Entity":{"type":"object","properties":{"id":{"type":"string"}},"discriminator":{"mapping":{
		"user":"#/components/schemas/User","guest":"#/components/schemas/Guest","app":"#/components/schemas/App"}}},
		"User":` + made("Entity", "mail") + `,"Guest":` + made("User", "inviteToken") + `,"App":` + made("Entity", "clientSecret")
	for row, want := range map[string][]string{
		"Entity": {"id", "mail", "inviteToken", "clientSecret"},
		"User":   {"id", "mail", "inviteToken"},
		"Guest":  {"id", "mail", "inviteToken"},
		"App":    {"id", "clientSecret"},
	} {
		kind := drawnSpec(t, drafted(t, listing(`{"$ref":"#/components/schemas/`+row+`"}`, schemas))).Kinds[0]
		var got []string
		for _, f := range kind.Fields {
			got = append(got, f.Name)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %q, want %q", row, got, want)
		}
	}
}

// TestTheIDIsAFieldAmongTooMany draws a record that has its id behind more fields than are drawn.
func TestTheIDIsAFieldAmongTooMany(t *testing.T) {
	var members strings.Builder
	for i := range 400 {
		fmt.Fprintf(&members, `"p%d":{"type":"integer"},`, i)
	}
	kind := drawnSpec(t, drafted(t, listing(`{"type":"object","properties":{`+members.String()+`"id":{"type":"string"}}}`, ""))).Kinds[0]
	checktest.True(t, slices.Equal(kind.ID, []string{"id"}), "the id is: kind.ID is %v", kind.ID)
	checktest.MustTrue(t, kind.Field("id") != nil, `the id is: kind.Field("id") is nil`)
	checktest.True(t, len(kind.Fields) <= 200, "the id is: len(kind.Fields) is %v, want <= 200", len(kind.Fields))
}

// TestADocumentWithThousandsOfVariantsIsDrawn draws a record with more variants than are looked at, each a record again:
// it ends, and says that there may be more secrets.
func TestADocumentWithThousandsOfVariantsIsDrawn(t *testing.T) {
	var variants, schemas []string
	for i := range 4000 {
		variants = append(variants, fmt.Sprintf(`{"$ref":"#/components/schemas/V%d"}`, i))
		schemas = append(schemas, fmt.Sprintf(`"V%d":{"type":"object","properties":{"p%d":{"$ref":"#/components/schemas/Any"}}}`, i, i))
	}
	row := `{"allOf":[{"type":"object","properties":{"id":{"type":"string"}}},{"$ref":"#/components/schemas/Any"}]}`
	draft := drafted(t, listing(row, `"Any":{"oneOf":[`+strings.Join(variants, ",")+`]},`+strings.Join(schemas, ",")))
	if n := len(drawnSpec(t, draft).Kinds[0].Fields); n > 200 {
		t.Errorf("%d fields are drawn, want at most about 150", n)
	}
	if !hasDoubt(draft, "too many fields to check") {
		t.Errorf("no doubt says that there are more: %q", draft.Unsure)
	}
}

// TestMembersNamedWithDotsAreDrawn draws records with members that have dots in their names: as fields, an id, a clock, a key of
// rows. A name that may be a member or a path is doubted, and a secret by either.
func TestMembersNamedWithDotsAreDrawn(t *testing.T) {
	const text = `{"type":"string"}`
	object := func(members string) string { return `{"type":"object","properties":{` + members + `}}` }
	for row, want := range map[string]string{ // name: class
		`"api.key":` + text:                                     "api.key: secret",
		`"access.token":` + text:                                "access.token: secret",
		`"x.y":{"type":"string","format":"email"}`:              "x.y: name",
		`"@odata.etag":` + text:                                 "@odata.etag: ",
		`"a..b":` + text:                                        "a..b: ",
		`".":` + text:                                           ".: ",
		`"o":` + object(`"api.key":`+text):                      "o.api.key: secret",
		`"push.to":` + object(`"token":`+text):                  "push.to.token: secret",
		`"push.to":` + object(`"plain":`+text):                  "push.to.plain: none",
		`"api.key":` + text + `,"api":` + object(`"key":`+text): "api.key: secret, doubted",
		`"user.name":` + text + `,"user":` + object(`"name":{"type":"integer"}`):              "user.name: name, doubted",
		`"user.x":` + text + `,"user":` + object(`"x":{"type":"string","format":"password"}`): "user.x: secret, doubted",
		`"user.name":` + text + `,"user":` + object(`"id":`+text):                             "user.name: name",
	} {
		draft := drafted(t, listing(object(`"id":`+text+`,`+row), ""))
		name, rest, _ := strings.Cut(want, ": ")
		class, _, doubted := strings.Cut(rest, ", ")
		got := "none"
		if f := drawnSpec(t, draft).Kinds[0].Field(name); f != nil {
			got = f.Class
		}
		if got != class {
			t.Errorf("%s: the class of %s is %q, want %q", row, name, got, class)
		}
		if said := hasDoubt(draft, "field "+name, "another is inside objects at the same path"); said != doubted {
			t.Errorf("%s: a doubt says that the name stands twice: %v, want %v", row, said, doubted)
		}
	}
	const rows = `"d.results":{"type":"array","items":{"type":"object","properties":{"thing.id":{"type":"string"},
		"created.at":{"type":"string","format":"date-time"}}}}`
	for members, doubted := range map[string]bool{rows: false, rows + `,"d":` + object(`"results":{"type":"array","items":`+
		object(`"n":`+text)+`}`): true} {
		draft := drafted(t, strings.Replace(listing(text, ""), `"things":{"type":"array","items":`+text+`}`, members, 1))
		k := drawnSpec(t, draft).Kinds[0]
		checktest.Equal(t, k.Lists[0].Key, "d.results", "the key is: k.Lists[0].Key")
		checktest.True(t, slices.Equal(k.ID, []string{"thing.id"}), "the key is: k.ID is %v", k.ID)
		checktest.Equal(t, k.Clock, "created.at", "the key is: k.Clock")
		if said := hasDoubt(draft, "the name d.results", "inside an object"); said != doubted {
			t.Errorf("a doubt says that the rows stand twice: %v, want %v: %q", said, doubted, draft.Unsure)
		}
	}
}
