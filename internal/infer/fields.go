// This file finds the fields of a kind's records, with their types and classes.

package infer

import (
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// field is one field of a kind.
type field struct {
	spec    spec.Field
	ownName string // the name of the member itself, which is the last part of spec.Name and may contain dots
	why     string
	schema  openapi.Schema
	enum    []string
}

// Limits on the fields of a kind.
const (
	maxLevels   = 3
	maxFields   = 150
	maxExamined = 4000 // the maximum number of members that listFields examines
	// maxVariants is the maximum number of schema variants that listFields examines for a kind.
	maxVariants = 20_000
)

// listFields returns the fields of a record in one or more schemas, outer fields first. Inside the values of a map,
// and inside a member whose name has dots, only secrets become fields, because a spec cannot name the other fields
// there. twice has the names that belong to two members: a name with dots, and the path of a nested member. isWhole
// is false if a limit stopped the search.
func (d fieldCache) listFields(schemas []openapi.Schema, levels int) (all []*field, twice []string, isWhole bool) {
	type level struct {
		prefix  string
		path    string // the prefix of the names, with a zero byte instead of a dot between members
		schemas []openapi.Schema
		depth   int
		hides   bool // whether only secrets become fields
	}
	seen := map[string]string{} // the path of each field found, by the field's name
	queue := []level{{schemas: schemas, depth: 1}}
	looked, left := 0, maxVariants
	for ; len(queue) > 0 && looked < maxExamined; queue = queue[1:] {
		at := queue[0]
		for _, p := range openapi.Members(at.schemas, &left) {
			looked++
			name, path := at.prefix+p.Name, at.path+p.Name
			inside := level{name + ".", path + "\x00", append([]openapi.Schema{p.Schema}, p.Others...), at.depth + 1,
				at.hides || strings.Contains(p.Name, ".")}
			switch {
			case p.Name == "":
				inside.prefix, inside.path, inside.hides = "", "", true
			case seen[name] == path || strings.Contains(p.Name, "\x00"):
				continue
			default:
				f := d.field(p.Name, p.Schema)
				f.spec.Name = name
				d.findSecret(&f, p, &left)
				isSecret := f.spec.Class == spec.ClassSecret
				first := -1
				if seen[name] != "" {
					first = slices.IndexFunc(all, func(f *field) bool { return f.spec.Name == name })
				}
				switch {
				case first >= 0 && isSecret:
					all[first].spec.Class, all[first].why = f.spec.Class, f.why
				case first < 0 && (isSecret || len(all) < maxFields && !at.hides): // the number of secrets has no limit
					all = append(all, &f)
				}
				if seen[name] != "" && !at.hides {
					twice = append(twice, name)
				} else if isSecret || !at.hides {
					seen[name] = path
				}
				if isSecret {
					continue
				}
			}
			if at.depth < levels {
				queue = append(queue, inside)
			}
		}
	}
	return all, twice, len(queue) == 0 && left > 0
}

// findSecret sets the class of a field to secret if any variant of its schema is a secret.
func (d fieldCache) findSecret(f *field, p openapi.Property, left *int) {
	for _, s := range append([]openapi.Schema{p.Schema}, p.Others...) {
		for _, one := range s.Variants(left) {
			if other := d.field(p.Name, one); other.spec.Class == spec.ClassSecret {
				f.spec.Class, f.why = other.spec.Class, other.why
				return
			}
		}
	}
}

// fieldCache stores the description of each member, because many kinds share members.
type fieldCache map[fieldKey]field

type fieldKey struct {
	name   string
	schema openapi.Schema
}

// field returns the description of a member, from the cache if possible. The caller sets the field's full name.
func (d fieldCache) field(name string, schema openapi.Schema) field {
	f, ok := d[fieldKey{name, schema}]
	if !ok {
		f.schema, f.ownName = schema, name
		f.describe(name)
		d[fieldKey{name, schema}] = f
	}
	return f
}

func (f *field) isTime() bool {
	return slices.Contains([]string{spec.TypeISO, spec.TypeEpoch, spec.TypeMillis, spec.TypeRFC2822, spec.TypeDate}, f.spec.Type)
}

// describe finds a field's type and class.
func (f *field) describe(name string) {
	s := f.schema
	typ, format := s.Type(), s.Format()
	example := s.Example()
	f.enum = s.Enum()
	switch {
	case typ == "object":
		f.spec.Type = spec.TypeMap
	case typ == "boolean":
		f.spec.Type = spec.TypeBool
	case format == "date-time-rfc-2822" || typ == "string" && example != nil && rfc2822.MatchString(example.Text):
		f.spec.Type = spec.TypeRFC2822
	case format == "date-time" || typ == "string" && example != nil && iso8601.MatchString(example.Text):
		f.spec.Type = spec.TypeISO
	case format == "date" || typ == "string" && example != nil && isoDate.MatchString(example.Text):
		f.spec.Type = spec.TypeDate
	case typ == "integer" && (slices.Contains([]string{"unix-time", "timestamp", "unix-timestamp", "epoch"}, format) || f.isEpoch(name)):
		f.spec.Type = spec.TypeEpoch
	case typ == "integer" && f.isMillis(name):
		f.spec.Type = spec.TypeMillis
	case typ == "integer":
		f.spec.Type = spec.TypeInt
	case typ == "number":
		f.spec.Type = spec.TypeDecimal
	case typ == "string" && len(f.enum) > 1:
		f.spec.Type = spec.TypeSelect
	}
	if typ != "boolean" {
		f.findClass(name, typ, format)
	}
}

// Patterns of example values: times, phone numbers, URLs, email addresses and Unix times.
var (
	rfc2822  = regexp.MustCompile(`^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}$`)
	iso8601  = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)
	isoDate  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	e164     = regexp.MustCompile(`^\+[1-9]\d{6,14}$`)
	webURL   = regexp.MustCompile(`^https?://`)
	mailbox  = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)
	epochNow = regexp.MustCompile(`^1[0-9]{9}$`)

	epochMillis = regexp.MustCompile(`^1[0-9]{12}$`)
)

// isEpoch reports whether an integer field is a Unix time in seconds.
func (f *field) isEpoch(name string) bool {
	example := f.schema.Example()
	text := strings.ToLower(f.schema.Description())
	said := strings.Contains(text, "unix") || strings.Contains(text, "epoch")
	if strings.Contains(text, "millisecond") || hasWord(name, "ms", "millis") {
		return false
	}
	timely := isOneOf(name, clockFields...) || hasWord(name, "at", "time", "timestamp", "created", "updated", "expires")
	return said && timely || timely && example != nil && epochNow.MatchString(example.Text)
}

// isMillis reports whether an integer field is a Unix time in milliseconds.
func (f *field) isMillis(name string) bool {
	timely := isOneOf(name, clockFields...) || hasWord(name, "at", "timestamp", "created", "updated")
	example := f.schema.Example()
	return timely && (strings.Contains(strings.ToLower(f.schema.Description()), "millisecond") || example != nil &&
		epochMillis.MatchString(example.Text))
}

// findClass sets the class of a field by its name, its format and its example.
func (f *field) findClass(name, typ, format string) {
	example := ""
	if x := f.schema.Example(); x != nil && x.Kind == openapi.String {
		example = x.Text
	}
	text := typ == "string" || typ == "" || typ == "array" && f.schema.Items().Type() == "string"
	inside := typ == "object" || typ == "array"
	switch {
	case isSecret(name) && text && len(f.enum) == 0:
		f.setClass(spec.ClassSecret, "by its name")
	case format == "password":
		f.spec.Class, f.why = spec.ClassSecret, secretByFormat
	case inside:
	case format == "phone" || format == "phone-number" || format == "e164" || e164.MatchString(example):
		f.setClass(spec.ClassPhone, "by its format or example")
	case text && (hasWord(name, "phone", "mobile", "msisdn", "telephone", "fax") || isOneOf(name, "callerid", "phonenumber")) &&
		!hasWord(name, "id", "type", "country", "sid"):
		f.setClass(spec.ClassPhone, "by its name")
	case format == "email" || mailbox.MatchString(example):
		f.setClass(spec.ClassName, "an address of a person")
	case text && hasWord(name, "email", "mail", "mailbox"):
		f.setClass(spec.ClassName, "an address of a person, by its name")
	case slices.Contains([]string{"uri", "url", "uri-template", "iri"}, format) || webURL.MatchString(example):
		f.setClass(spec.ClassURL, "by its format or example")
	case text && len(f.enum) == 0 && hasWord(name, "url", "uri", "href", "link"):
		f.setClass(spec.ClassURL, "by its name")
	case text && len(f.enum) == 0 && (isOneOf(name, "name", "fullname", "firstname", "lastname", "surname", "givenname", "familyname",
		"middlename", "displayname", "nickname", "realname", "username", "login", "screenname", "author", "address", "street", "line1", "line2",
		"postalcode", "zip", "zipcode", "birthdate", "dateofbirth", "dob", "ip", "ipaddress") ||
		hasWord(name, "ip") && hasWord(name, "address", "client", "source", "remote")):
		f.setClass(spec.ClassName, "may name a person")
	case text && len(f.enum) == 0 && isOneOf(name, "body", "text", "message", "content", "comment", "note", "notes", "bodytext", "bodyhtml",
		"html", "subject", "transcript"):
		f.setClass(spec.ClassBody, "text that people wrote, by its name")
	case hasWord(name, "price", "amount", "cost", "fee", "salary", "balance", "total", "subtotal") && (typ == "number" || typ == "integer" &&
		!hasWord(name, "count") ||
		typ == "string" && f.schema.Format() == "decimal"):
		f.setClass(spec.ClassPrice, "by its name")
	}
}

func (f *field) setClass(class, why string) { f.spec.Class, f.why = class, "class: "+why }

// secretByFormat is the reason for a secret that is known by its format and not by its name.
const secretByFormat = "class: by its format"

// isSecret reports whether a field's name is that of a secret.
func isSecret(name string) bool {
	short, last := foldName(name), strings.Join(splitWords(name), " ")
	return isOneOf(name, "secretkey", "authorization", "pin", "cvc", "cvv", "ssn", "otp", "encryptedvalue") || secretEnd.MatchString(last) ||
		keyEnd.MatchString(short) && !hasWord(name, "public", "publishable") || tokenEnd.MatchString(short) && !pageToken.MatchString(short)
}

// Endings of the names of secrets. They match client_secret, secret_access_key, sshPrivateKey and recovery_codes,
// but not password_changed, secret_name and key_id. pageToken matches tokens that are no secrets: paging and
// version tokens, and numbers of text tokens.
var (
	secretEnd = regexp.MustCompile(`\b(?:(?:password|passwd|pwd|secret|passphrase|passcode|jwt)s?(?: (?:access|api|auth))?` +
		`(?: (?:hash|salt|value|key|token|text|plaintext|digest|string|data|confirmation))?\d*)$`)
	keyEnd = regexp.MustCompile(`(?:(?:private|encryption|decryption|signing|hmac|auth|api|access|shared|master)keys?` +
		`(?:pem|value|data|plaintext|hash|base64)?|(?:recovery|backup)codes?|(?:otp|mfa|recovery)seeds?|connectionstrings?)\d*$`)
	tokenEnd  = regexp.MustCompile(`tokens?(?:value|hash|plaintext)?\d*$`)
	pageToken = regexp.MustCompile(`(?:page|next|prev|previous|cursor|continuation|continue|pagination|sync|start|skip|scroll|resume|delta|` +
		`change|cancel|cancellation|idempotency|concurrency|version|lock|stop)tokens?$|` +
		`(?:input|output|prompt|completion|reasoning|cached|used|total|max|min|maximum|minimum|num)tokens$`)
)

// checkSecrets declares fields that are no secret but have the name of another kind's secret. A spec hides a
// secret's name in every kind that doesn't declare it. checkSecrets notes the fields that stay hidden, and the
// write-only fields that are not hidden.
func (a *api) checkSecrets() {
	secrets := map[string]*field{}
	for _, k := range a.kinds {
		for _, f := range k.fields {
			if f.spec.Class == spec.ClassSecret && (secrets[f.spec.Name] == nil || f.why != secretByFormat) {
				secrets[f.spec.Name] = f
			}
			if f.schema.IsWriteOnly() && f.spec.Class != spec.ClassSecret {
				a.noteOnce("kind "+k.name+", field "+f.spec.Name,
					"it appears only in requests and is not marked as a secret, so it is not hidden")
			}
		}
	}
	for _, k := range a.kinds {
		for name, secret := range sortedEntries(secrets) {
			own := slices.IndexFunc(k.fields, func(f *field) bool { return f.spec.Name == name })
			var hidden []string
			if end := "." + name; secret.why == secretByFormat {
				for _, f := range k.fields {
					if f.spec.Class != spec.ClassSecret && len(f.ownName) <= len(name) && strings.HasSuffix(f.spec.Name, end) {
						hidden = append(hidden, "field "+f.spec.Name)
					}
				}
			}
			hidden = append(hidden, k.hiddenRowFields(name)...)
			if key := k.findKeyWith(name); key != "" {
				hidden = append(hidden, "key "+key)
			}
			switch {
			case len(hidden) == 0:
			case own < 0:
				k.fields = append(k.fields, &field{spec: spec.Field{Name: name}, ownName: name, why: "not a secret here; another kind has " +
					"a secret with this name"})
			case k.fields[own].spec.Class == spec.ClassSecret:
				a.noteOnce("kind "+k.name+", "+hidden[0], "it is hidden and not read, because "+name+" is a secret of the kind")
			}
		}
	}
}

// hiddenRowFields returns the fields of rows that a secret of this name hides because it includes the key of the list.
// For example, the secret keys.access_key hides access_key in a list whose rows are under keys.
func (k *kind) hiddenRowFields(name string) (hidden []string) {
	for _, l := range k.lists {
		for _, f := range k.fields {
			path, own := "."+l.envelope.key+"."+f.spec.Name, f.spec.Name
			if f.spec.Class != spec.ClassSecret && len(own) < len(name) && strings.HasSuffix(path, "."+name) {
				hidden = append(hidden, "field "+own)
			}
		}
	}
	return hidden
}

// findKeyWith returns the key of a list or a record whose path includes the named member, or "" if no path does.
func (k *kind) findKeyWith(name string) string {
	var keys []string
	for _, l := range k.lists {
		keys = append(keys, l.envelope.key)
	}
	for _, in := range k.instances {
		keys = append(keys, in.recordKey)
	}
	i := slices.IndexFunc(keys, func(key string) bool { return strings.Contains("."+key+".", "."+name+".") })
	if i < 0 {
		return ""
	}
	return keys[i]
}
